"""`jaxobs demo`: a real training run to look at, with typical mistakes made on purpose."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from jaxobs.base import config
from jaxobs.base.errors import MissingExtraError, PortTakenError, SettingError
from jaxobs.cli import add_settings, given_settings
from jaxobs.ops import local_prometheus
from jaxobs.ops.demo.interruption import Interruption
from jaxobs.session import lifecycle
from jaxobs.state import store
from jaxobs.views.client import DEFAULT_URL
from jaxobs.web.server import Handle

if TYPE_CHECKING:
    from jaxobs.ops.demo.story import Story
    from jaxobs.ops.demo.telling import Teller

HELP = "train on handwritten digits, with typical mistakes, and show what jaxobs says"

DEFAULT_MINUTES = 5.0
GRAPH = "jax_compilations_total"
SAMPLE_INTERVAL = 1.0
"""Seconds: more often than by default, so that a run of some minutes shows a leak."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `jaxobs demo`."""
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--once", action="store_true", help="finish as fast as possible, for CI")
    length.add_argument(
        "--minutes", type=_minutes, default=DEFAULT_MINUTES, metavar="N",
        help="minutes to train, at an easy pace (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("--prometheus", action="store_true", help="start a local Prometheus that scrapes the demo")
    add_settings(parser, ["port", "addr", "event_log", "metrics_file"])


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = float("nan")
    if not 0 < minutes <= 24 * 60:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of minutes above 0, up to 1440")
    return minutes


def run(args: argparse.Namespace) -> int:
    """Trains; 0 when it ended as it should, 1 when a mistake did not show as expected with `--once`.

    Raises:
      JaxobsError: a package, Prometheus or the port is missing.
    """
    _need_packages()
    if args.prometheus:
        local_prometheus.program()
    with contextlib.ExitStack() as stack:
        # Before jaxobs starts, which leaves signals alone that somebody handles.
        interruption = stack.enter_context(Interruption())
        endpoint = _start(given_settings(args))
        stack.callback(endpoint.close)
        url = endpoint.url.rstrip("/")
        prometheus = None
        if args.prometheus:
            prometheus = stack.enter_context(local_prometheus.LocalPrometheus(f"{url}/metrics"))
        return _train(args, url, prometheus, interruption)


def _need_packages() -> None:
    for module, package in (("flax", "flax"), ("optax", "optax"), ("sklearn", "scikit-learn")):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError("jaxobs demo", package, "demo")


def _start(settings: dict[str, Any]) -> Handle:
    """Looks and serves; on a free port where the usual one is taken and nobody asked for it."""
    if config.disabled():
        raise SettingError("`JAXOBS_DISABLED` is set, so the demo has nothing to show. Unset it and try again.")
    store.current().program = "jaxobs demo"
    lifecycle.install(**{"sample_interval": SAMPLE_INTERVAL} | settings)
    try:
        endpoint = lifecycle.serve(port=settings.get("port"), addr=settings.get("addr"))
    except PortTakenError:
        if settings.get("port") is not None or os.environ.get("JAXOBS_PORT"):
            raise
        endpoint = lifecycle.serve(port=0, addr=settings.get("addr"))
    assert endpoint is not None, "serve() gives an endpoint unless jaxobs is disabled"
    return endpoint


def _train(
    args: argparse.Namespace, url: str, prometheus: local_prometheus.LocalPrometheus | None, interruption: Interruption
) -> int:
    from jaxobs.ops.demo.story import Story
    from jaxobs.ops.demo.telling import Teller

    top = "jaxobs top" if url == DEFAULT_URL else f"jaxobs top {url}"
    addresses = [("live page", f"{url}/"), ("terminal", top), ("metrics", f"{url}/metrics")]
    if prometheus is not None:
        addresses += [("Prometheus", prometheus.url), ("a graph", prometheus.graph_url(GRAPH))]
    teller = Teller(every_epoch=args.once, known=addresses)
    interruption.defer = True
    story = Story(teller, None if args.once else args.minutes, lambda: interruption.number is not None)
    _open(teller, args)
    _give_peak(teller, given_settings(args))
    story.run()
    _close(teller, story, interruption)
    if interruption.number == signal.SIGTERM:
        lifecycle.finish("signal", "SIGTERM")
        return 128 + signal.SIGTERM
    return 1 if args.once and not _all_as_expected(story) else 0


def _open(teller: Teller, args: argparse.Namespace) -> None:
    import jax

    kinds = sorted({f"{each.device_kind}" for each in jax.devices()})
    separator = f" {teller.surface.glyphs.separator} "
    teller.line(
        ("jaxobs demo", "program"),
        (separator, "dim"),
        (f"handwritten digits on {len(jax.devices())} device{'s' * (len(jax.devices()) > 1)} ", ""),
        (f"({', '.join(kinds)}), JAX {jax.__version__}", ""),
    )
    teller.addresses()
    if not args.once:
        teller.line((f"  It trains for {args.minutes:g} min; Ctrl-C ends it with a summary.", "dim"))
    teller.line()


def _give_peak(teller: Teller, settings: dict[str, Any]) -> None:
    """Measures the peak of a CPU, for the MFU: no data sheet has it."""
    import jax

    from jaxobs.ops.demo import training

    if jax.default_backend() == "cpu":
        peak = training.measured_flops()
        lifecycle.install(**{"sample_interval": SAMPLE_INTERVAL, "peak_flops": peak} | settings)
        teller.line((f"  MFU is against {peak / 1e9:,.0f} GFLOP/s, measured with a product of matrices.", "dim"))
        teller.line()


def _close(teller: Teller, story: Story, interruption: Interruption) -> None:
    if interruption.number is not None:
        teller.line(("Interrupted.", "warn"))
    teller.summary(lifecycle.snapshot(), story.seen, story.seconds)
    teller.paragraph(f"It reads {story.accuracy:.1%} of the digits that it was not trained on.", indent=1)


def _all_as_expected(story: Story) -> bool:
    from jaxobs.ops.demo.troubles import TROUBLES

    shown = {each.trouble.name for each in story.seen if each.as_expected}
    missing = [each for each in TROUBLES if each.name not in shown]
    for trouble in missing:
        expected = " or ".join(trouble.causes)
        print(
            f"jaxobs: the mistake `{trouble.name}` did not show as expected: no compilation of "
            f"`{trouble.function}` with the cause {expected} while it was made.",
            file=sys.stderr,
        )
    return not missing
