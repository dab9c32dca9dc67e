"""`jaxobs top`: a running process in the terminal, live; one plain snapshot where there is no terminal."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jaxobs import client, terminal
from jaxobs.errors import JaxobsError, MissingExtraError
from jaxobs.facts import CacheLookup, Compilation, Event, Snapshot
from jaxobs.termination import ended_by_signals

if TYPE_CHECKING:
    from rich.console import Console

HELP = "watch a running process in the terminal"

KEPT = 300
"""Recent compilations, and as many cache lookups, that the view holds."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `jaxobs top`."""
    parser.add_argument(
        "url", nargs="?", default=client.DEFAULT_URL, metavar="URL",
        help="address of the endpoint: 9464, localhost:9464 or http://host:9464 (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS",
        help="seconds between two looks at the process (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("--once", action="store_true", help="print one snapshot and end")


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of seconds between 0.1 and 3600")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Shows the process until `q`, or once; 0 when it was seen.

    Raises:
      JaxobsError: nothing answers at the address, it is no jaxobs endpoint, or `rich` is missing.
    """
    feed = Feed(client.endpoint_url(args.url), None if args.once else args.interval)
    live = not args.once and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    console = terminal.make_console("jaxobs top") if live else None
    feed.look(first=True)
    if console is None:
        _print_once(feed)
        return 0
    return _watch(feed, console)


class Feed:
    """What is known of the process: looks at it again and again, keeps the last values when it is gone."""

    def __init__(self, url: str, interval: float | None) -> None:
        self.connection = terminal.Connection(url=url, interval=interval)
        self.version = 0
        """Grows with every look."""
        self._snapshot: Snapshot | None = None
        self._taken = 0.0
        self._rates: dict[str, float] = {}
        self._compilations: deque[Compilation] = deque(maxlen=KEPT)
        self._lookups: deque[CacheLookup] = deque(maxlen=KEPT)
        self._next = self._next_lookup = 0
        self._news_until = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def look(self, *, first: bool = False) -> None:
        """Fetches once; the first failure is raised, a later one is kept for the view."""
        url = self.connection.url
        try:
            snapshot = client.fetch_snapshot(url)
            again = self._snapshot is not None and _other_process(self._snapshot, snapshot)
            page = client.fetch_events(url, since=0 if again else self._next, kind="compilation")
            lookups = self._fetch_lookups(snapshot, again)
        except JaxobsError as error:
            if first:
                raise
            with self._lock:
                since = self.connection.gone_since or time.time()
                self.connection = dataclasses.replace(
                    self.connection, gone_since=since, error=getattr(error, "brief", str(error))
                )
                self.version += 1
            return
        with self._lock:
            self._take(snapshot, page, lookups, again)

    def _fetch_lookups(self, snapshot: Snapshot, again: bool) -> Sequence[Event]:
        """What the persistent cache was asked; after the compilations, for each lookup is told before its own."""
        if not snapshot.cache.enabled:
            return ()
        since = 0 if again else self._next_lookup
        page = client.fetch_events(self.connection.url, since=since, kind="cache_lookup")
        self._next_lookup = page.next
        return page.events

    def _take(self, snapshot: Snapshot, page: client.EventPage, lookups: Sequence[Event], again: bool) -> None:
        before, taken = self._snapshot, time.monotonic()
        news = self.connection.news if taken < self._news_until else ""
        if again:
            news = f"The process was started again: pid {snapshot.process.pid}."
            self._news_until = taken + 15
            self._compilations.clear()
            self._lookups.clear()
            before = None
        self._rates = _rates(before, snapshot)
        self._compilations.extend(each for each in page.events if isinstance(each, Compilation))
        self._lookups.extend(each for each in lookups if isinstance(each, CacheLookup))
        self._snapshot, self._taken, self._next = snapshot, taken, page.next
        self.connection = dataclasses.replace(self.connection, gone_since=None, error="", news=news)
        self.version += 1

    def view(self) -> terminal.Overview:
        """What to show now."""
        with self._lock:
            assert self._snapshot is not None, "look() comes first"
            gone = self.connection.gone_since is not None
            return terminal.Overview(
                snapshot=self._snapshot,
                connection=self.connection,
                compilations=tuple(self._compilations),
                lookups=tuple(self._lookups),
                rates={} if gone else dict(self._rates),
                age=0.0 if gone else time.monotonic() - self._taken,
            )

    @contextlib.contextmanager
    def running(self, interval: float) -> Iterator[None]:
        """Looks every `interval` seconds in a thread of its own, so that a slow answer never delays a key."""

        def loop() -> None:
            while not self._stop.wait(interval):
                self.look()

        threading.Thread(target=loop, name="jaxobs-top", daemon=True).start()
        try:
            yield
        finally:
            self._stop.set()


def _other_process(before: Snapshot, now: Snapshot) -> bool:
    return (before.process.pid, before.process.started, before.process.hostname) != (
        now.process.pid, now.process.started, now.process.hostname,
    )  # fmt: skip


def _rates(before: Snapshot | None, now: Snapshot) -> dict[str, float]:
    """Calls a second of each function between two snapshots of one process."""
    if before is None or now.time <= before.time:
        return {}
    earlier = {each.name: each.calls for each in before.functions}
    return {
        each.name: max(each.calls - (earlier.get(each.name) or 0), 0) / (now.time - before.time)
        for each in now.functions
        if each.calls is not None
    }


def _print_once(feed: Feed) -> None:
    """One snapshot; with colours on a terminal that has `rich`, plain everywhere else."""
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
    """The live view; the terminal is as before when it ends, however it ends."""
    from rich.live import Live

    interval = feed.connection.interval or 1.0
    with (
        feed.running(interval),
        ended_by_signals(),
        _Keys() as keys,
        Live(terminal.Screen(feed.view(), fill=True), console=console, screen=True, auto_refresh=False) as live,
    ):
        shown: tuple[Any, ...] = ()
        memory = False
        try:
            while (key := keys.pressed(0.1)) not in ("q", "Q", "\x03", "\x04"):
                memory ^= key in ("m", "M")
                # Drawn again when there is news, when the window changed, and each second for the clocks.
                state = (feed.version, console.size, int(time.monotonic()), memory)
                if state != shown:
                    view = dataclasses.replace(feed.view(), memory=memory)
                    live.update(terminal.Screen(view, fill=True), refresh=True)
                    shown = state
        except KeyboardInterrupt:
            pass
    return 0


class _Keys:
    """Single keys from the terminal, without an echo; where that cannot be had, only Ctrl-C ends the view."""

    def __enter__(self) -> _Keys:
        self._saved: list[Any] | None = None
        with contextlib.suppress(ImportError, OSError, ValueError):
            import termios
            import tty

            self._input = sys.stdin.fileno()
            self._saved = termios.tcgetattr(self._input)
            tty.setcbreak(self._input)
        return self

    def __exit__(self, *_: object) -> None:
        if self._saved is not None:
            import termios

            termios.tcsetattr(self._input, termios.TCSADRAIN, self._saved)

    def pressed(self, timeout: float) -> str:
        """The key pressed within `timeout` seconds, or an empty text."""
        if self._saved is None:
            time.sleep(timeout)
            return ""
        if not select.select([self._input], [], [], timeout)[0]:
            return ""
        # End of input (the terminal was closed) counts as Ctrl-D.
        return os.read(self._input, 1).decode("latin-1") or "\x04"
