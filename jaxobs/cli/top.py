"""`jaxobs top`: a running process in the terminal, live; one plain snapshot if there is no terminal."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jaxobs.base.errors import JaxobsError, MissingExtraError
from jaxobs.facts.events import plain
from jaxobs.session.termination import ended_by_signals
from jaxobs.views import client, terminal
from jaxobs.views.top import Browser, Feed, Keys, Page, Process
from jaxobs.web import endpoints

if TYPE_CHECKING:
    from rich.console import Console

HELP = "show a running process live in the terminal"

_MOST_NAMED = 10

_KEYS = """\
keys: arrows, PgUp and PgDn move, Tab changes the view, Enter opens details, / filters, s sorts, m shows memory,
p shows another process of this machine, ? lists all keys, q quits."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `jaxobs top`."""
    parser.epilog = _KEYS
    parser.add_argument(
        "url", nargs="?", metavar="URL",
        help="address of the endpoint: 9464, localhost:9464 or http://host:9464 (default: the "
             "process on this machine that serves one; if there are several, it asks)",
    )  # fmt: skip
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS",
        help="seconds between two updates (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("--once", action="store_true", help="print one snapshot and exit")
    parser.add_argument(
        "--json", action="store_true", help="print one snapshot as a JSON object, with its verdict, and exit"
    )


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds between 0.1 and 3600")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Shows the process until `q`, or once; 0 when it was seen.

    Raises:
      JaxobsError: nothing answers at the address, something else than jaxobs does, or `rich` is missing.
    """
    url = _found() if args.url is None else args.url
    try:
        return _show(url, args)
    except client.EndpointUnreachableError as error:
        others = [f"{each.url} ({each.program}, pid {each.pid})" for each in endpoints.running()[:_MOST_NAMED]]
        if not others:
            raise
        raise JaxobsError(f"{error} Served on this machine: {', '.join(others)}.") from None


def _show(url: str, args: argparse.Namespace) -> int:
    if args.json:
        print(json.dumps(plain(client.fetch_snapshot(client.endpoint_url(url))), indent=2, allow_nan=False))
        return 0
    feed = Feed(client.endpoint_url(url), None if args.once else args.interval)
    live = not args.once and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    console = terminal.make_console("jaxobs top") if live else None
    feed.look(first=True)
    if console is None:
        _print_once(feed)
        return 0
    return _watch(feed, console)


def _found() -> str:
    """Returns the endpoint of this machine; of several the one that is chosen.

    Raises:
      JaxobsError: there are several, and nobody to ask.
    """
    found = endpoints.running()
    if len(found) < 2:
        return found[0].url if found else client.DEFAULT_URL
    width = max(len(each.url) for each in found)
    lines = [f"{each.url:<{width}}  {each.program}, pid {each.pid}" for each in found]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        listed = "\n".join(f"  {line}" for line in lines)
        raise JaxobsError(f"There are {len(found)} endpoints on this machine. Name one: jaxobs top URL\n{listed}")
    for number, line in enumerate(lines, 1):
        print(f"{number:>3}  {line}")
    while True:
        try:
            answer = input(f"Which one? [1-{len(found)}] ").strip()
        except EOFError:
            raise JaxobsError("None was selected. Name one: jaxobs top URL") from None
        if answer.isdecimal() and 1 <= int(answer) <= len(found):
            return found[int(answer) - 1].url


def _print_once(feed: Feed) -> None:
    """Prints one snapshot; with colors on a terminal that has `rich`, plain everywhere else."""
    view = dataclasses.replace(feed.view(), connection=dataclasses.replace(feed.connection, interval=None))
    with contextlib.suppress(MissingExtraError):
        if sys.stdout.isatty():
            terminal.make_console("jaxobs top").print(terminal.Screen(view))
            return
    try:
        sys.stdout.write(terminal.plain_text(view, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has enough; Python would complain at exit while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _watch(feed: Feed, console: Console) -> int:
    """Shows the live view; the terminal is as before when it ends, however it ends."""
    from rich.live import Live

    interval = feed.connection.interval or 1.0
    browser = Browser(_processes)
    feed.start(interval)
    with (
        ended_by_signals(),
        _suspension() as suspended,
        Keys() as keys,
        Live(Page(browser, feed.view()), console=console, screen=True, auto_refresh=False) as live,
    ):
        shown: tuple[Any, ...] = ()
        try:
            while not browser.done:
                # Drawn again when there is news, at a key, when the window changed, and each second for the clocks.
                state = (feed.version, feed.connection.url, browser.version, console.size, int(time.monotonic()))
                if state != shown:
                    live.update(Page(browser, feed.view()), refresh=True)
                    shown = state
                for key in keys.pressed(0.1):
                    browser.press(key)
                if browser.wanted is not None:
                    feed = _switched(feed, browser, interval)
                if suspended.is_set():
                    suspended.clear()
                    live.stop()
                    with keys.released():
                        os.kill(os.getpid(), signal.SIGSTOP)
                    live.start()
                    shown = ()
        except KeyboardInterrupt:
            pass
        finally:
            feed.stop()
    return 0


@contextlib.contextmanager
def _suspension() -> Iterator[threading.Event]:
    """Flag that Ctrl-Z sets: the terminal has to be given back first, and taken again after `fg`."""
    asked = threading.Event()
    if not hasattr(signal, "SIGTSTP"):
        yield asked
        return
    before = signal.signal(signal.SIGTSTP, lambda number, frame: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGTSTP, before)


def _switched(feed: Feed, browser: Browser, interval: float) -> Feed:
    """Returns the feed of the process that was chosen; the old one if that does not answer."""
    url, browser.wanted = client.endpoint_url(browser.wanted or ""), None
    chosen = Feed(url, interval)
    try:
        chosen.look(first=True)
    except JaxobsError as error:
        browser.connected(str(error))
        return feed
    feed.stop()
    chosen.start(interval)
    browser.connected()
    return chosen


def _processes() -> Sequence[Process]:
    return [Process(each.url, each.pid, each.program) for each in endpoints.running()]
