"""`jaxobs gameday`: rehearse an incident with a chosen or a secret fault in the demo."""

import argparse
import contextlib
import importlib.util
import json
import random
import socket
import sys
import time
from pathlib import Path

from jaxobs.base import config
from jaxobs.base.errors import JaxobsError, MissingExtraError, did_you_mean
from jaxobs.facts.events import plain
from jaxobs.ops import gameday
from jaxobs.ops.demo.interruption import Interruption
from jaxobs.ops.gameday import telling
from jaxobs.ops.gameday.running import Ended, rehearsal

HELP = "rehearse an incident: the demo with a fault that you find by alert, runbook and diagnosis"

FINE, FINDINGS = 0, 1

_EPILOG = """\
Without FAULT, gameday picks a fault at random. Scrape the printed address with your Prometheus, and let the team find
the fault. Ctrl-C ends the rehearsal and prints the true fault next to the diagnosis of `jaxobs diagnose`.
Exit codes: 0 the diagnosis is right, 1 it is not, 2 usage."""
_MOST_MINUTES = 24 * 60


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("fault", nargs="?", metavar="FAULT", help="the fault (see --list; default: a random fault)")
    parser.add_argument("--list", action="store_true", help="print all faults with alert, runbook and fix, and exit")
    parser.add_argument("--reveal", action="store_true", help="print the fault at the start")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the random fault and start, for a repetition")
    parser.add_argument(
        "--minutes", type=float, default=60.0, metavar="N", help="minutes of the rehearsal (default: %(default)g)"
    )
    parser.add_argument(
        "--after", type=float, metavar="N", help="minutes until the fault begins (default: random, 1 to 3)"
    )
    parser.add_argument("--once", action="store_true", help="run as fast as possible, for CI; the alert does not fire")
    parser.add_argument("--port", type=int, metavar="N", help="port of the program (default: 9464, or a free one)")
    parser.add_argument("--addr", default="127.0.0.1", help="address of the program (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="directory for the logs (default: gameday-TIME in this directory)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")


def run(args: argparse.Namespace) -> int:
    """Rehearses; 0 if the diagnosis names the fault.

    Raises:
      JaxobsError: an argument does not fit, or the program does not start.
    """
    from jaxobs.ops.gameday import faults  # imports JAX

    known = faults.FAULTS
    if args.list:
        print(json.dumps(_as_json(known), indent=2) if args.json else "\n".join(telling.listing(known)).rstrip())
        return FINE
    if args.fault is not None and args.fault not in known:
        meant = did_you_mean(args.fault, known)
        raise JaxobsError(f"Unknown fault `{args.fault}`. {meant}Known faults: {', '.join(known)}.")
    if not 0 < args.minutes <= _MOST_MINUTES:
        raise JaxobsError(f"--minutes is a number above 0, up to {_MOST_MINUTES}.")
    if args.after is not None and not 0 <= args.after <= _MOST_MINUTES:
        raise JaxobsError(f"--after is a number from 0 to {_MOST_MINUTES}.")
    _need_packages()
    seed = random.SystemRandom().randrange(10_000) if args.seed is None else args.seed
    name = args.fault or random.Random(seed).choice(list(known))
    folder = args.out or Path(time.strftime("gameday-%Y%m%dT%H%M%SZ", time.gmtime()))
    ended = _rehearse(args, name, known[name], seed, folder)
    if args.json:
        print(json.dumps(plain(ended) | {"plan": _as_json(known)[name]}, indent=2, allow_nan=False))
    else:
        print("\n".join(telling.ending(ended, known[name])))
    return FINE if ended.is_named else FINDINGS


def _rehearse(args: argparse.Namespace, name: str, fault: gameday.Fault, seed: int, folder: Path) -> Ended:
    said = sys.stderr if args.json else sys.stdout
    with contextlib.ExitStack() as stack, Interruption() as interruption:
        interruption.defer = True
        print("Starting the program.", file=said, flush=True)
        try:
            running = stack.enter_context(
                rehearsal(
                    name,
                    fault,
                    seed,
                    folder,
                    port=_port(args),
                    addr=args.addr,
                    quick=args.once,
                    after=None if args.after is None else args.after * 60,
                )
            )
        except OSError as error:
            raise JaxobsError(f"`{folder}` cannot be used: {error.strerror or error}.") from None
        lines = [f"metrics:   {running.url}/metrics", f"live page: {running.url}/", f"log:       {running.log}",
                 f"events:    {running.event_log}"]  # fmt: skip
        lines += ["", *telling.plan(name, fault)] if args.reveal else ["", "Something will go wrong. Find out what."]
        lines.append("" if args.once else f"It lasts {args.minutes:g} min; Ctrl-C ends it with the answer.")
        print("\n".join(lines).rstrip(), end="\n\n", file=said, flush=True)
        running.wait(args.minutes, lambda: interruption.number is not None)
        return running.end()


def _port(args: argparse.Namespace) -> int:
    if args.port is not None:
        return int(args.port)
    for port in (config.Settings().port, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((args.addr, port))
            return int(probe.getsockname()[1])
    raise JaxobsError(f"`{args.addr}` has no free port. Give another --addr.")


def _need_packages() -> None:
    for module, package in (("flax", "flax"), ("optax", "optax"), ("sklearn", "scikit-learn")):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError("jaxobs gameday", package, "demo")


def _as_json(known: dict[str, gameday.Fault]) -> dict[str, dict[str, object]]:
    return {
        name: {
            "title": each.title, "causes": list(each.causes), "alert": each.alert, "undo": each.undo,
            "minutes": telling.minutes_until(each), "silent_minutes": each.from_start, "only": each.only,
        }
        for name, each in known.items()
    }  # fmt: skip
