"""PyTorch/XLA: its own counters, and the lines that make it compile, run and read.

Where the program has imported torch_xla, each step mark (`torch_xla.sync`) and each read (`tensor.item()`) is seen when
it returns (`torch_hooks`). What torch_xla has compiled meanwhile, by its own counters, belongs to that line: so counts
and seconds are torch_xla's. What no line is seen for is taken in on the slow tick, without one. No tensor is evaluated.
"""

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from jaxobs.base import threads
from jaxobs.base.guard import guard, guarded
from jaxobs.drivers import torch_xla
from jaxobs.facts.compilations import OTHER, CacheLookup, Change, Compilation
from jaxobs.internals.source_files import shown
from jaxobs.internals.transfers import TO_DEVICE, TO_HOST, Moved
from jaxobs.reasons import cures
from jaxobs.sources.support import torch_hooks
from jaxobs.sources.support.source import Source
from jaxobs.sources.support.torch_hooks import Hooks, Locator, user_frame
from jaxobs.state.call_stats import label
from jaxobs.state.loops import MOST_WAITING, Loops
from jaxobs.state.store import Store
from jaxobs.state.transfers import Fallbacks, Transfers
from jaxobs.state.wall import Wall

GRAPHS = "<torch_xla>"
"""The function of graphs whose line is not seen, and of the time in which the runtime ran graphs."""
MOST_LINES = 256
MOST_VARIANTS = 16
MOST_AT_ONCE = 64
"""Compilations that one look tells one by one; of more, as many events stand for all."""
FEWEST_READS = 4
"""The read at a line of a thread without step marks from which on each ends a step: fewer may be preparations."""
NOT_LOADED = (
    "The cache has an entry for this graph, but this runtime could not load it "
    "(PersistentCacheDeserializeFailure), so it was recompiled: on this backend the cache saves nothing."
)
_Shapes = dict[str, str]


@dataclass(slots=True)
class _Line:
    """A line that launches graphs."""

    variants: deque[_Shapes] = field(default_factory=lambda: deque(maxlen=MOST_VARIANTS))
    graphs: int = 0
    operations: float | None = None
    """Size of the latest graph, in nodes."""


class _Thread(threading.local):
    """Step marks of a thread, and the line whose marks are the steps."""

    def __init__(self) -> None:
        self.line: str | None = None
        self.makes_marks = False
        self.reads: dict[str, int] = {}
        """Reads by line, as long as there are no marks."""
        self.marks: dict[str, tuple[float, float]] = {}
        """Time of each line's latest mark, and the seconds of `compiled` then."""
        self.compiled = 0.0
        self.ended: dict[str, tuple[float, float]] = {}
        """The end of each loop's latest step, and the seconds between and within its steps that are not theirs."""


class TorchXla(Source):
    """The source: torch_xla's counters and hooks in, events, steps, transfers and fallbacks out."""

    def __init__(self, store: Store) -> None:
        self._growth: torch_xla.Growth | None = None
        self._hooks = Hooks(self._returned, self.sample)
        super().__init__(store)

    def _begin(self) -> None:
        self._lock = threads.RLock()  # reentrant: a signal handler of the program may run graphs
        self._hooks.after_fork()
        self._lines: dict[str, _Line] = {}
        self._thread = _Thread()
        self._names: dict[str, str] = {}
        """Names of the loops by the line of their marks."""
        self._sought: set[str] = set()
        """Operators that ran on the CPU at a line that is not known yet."""
        self._moved: dict[str, tuple[int, int]] = {}
        """Transfers that were seen and are not yet taken out of the runtime's own count, and their bytes."""
        if self._growth is not None:  # a forked child has its parent's counters
            self._look_away(self._growth)

    def start(self) -> None:
        """Begins to watch, once the program has imported torch_xla. Idempotent."""
        native = torch_xla.native()
        if native is None:
            return
        if self._growth is None:
            self._native, self._growth = native, torch_xla.Growth(native)
            self._locator = Locator(lambda name: native._xla_counter_value(name) or 0, self._located)
            before = self._look_away(self._growth)
            if before:
                self._store.note(
                    f"torch_xla compiled {before:,} graphs before jaxobs was installed; none of its figures has them."
                )
            self._store.describe(versions=torch_xla.versions(), capabilities={"torch_xla": True})
        with guarded("torch_xla.hooks"):
            self._hooks.put(native)

    def stop(self) -> None:
        """Puts back what was there before."""
        self._hooks.take_off()

    @guard("torch_xla.sample")
    def sample(self) -> None:
        """Takes in what no line was seen for, and what only the counters tell."""
        if self._growth is None:
            self.start()
        growth = self._growth
        if growth is None:
            return
        self._store.cache_elsewhere = torch_xla.persistent_cache(self._native)
        with self._lock:
            if not self._hooks.busy:
                self._launched(growth, None, GRAPHS)
            self._take_fallbacks()
            self._take_totals(growth)

    def _look_away(self, growth: torch_xla.Growth) -> int:
        """Forgets what was counted so far; returns how many graphs were compiled."""
        for name in (torch_xla.LAUNCHED_AGAIN, torch_xla.LOADED, torch_xla.NOT_FOUND, torch_xla.NOT_READ):
            growth.take(name)
        for name in ("CompileTime", "PersistentCacheLoad", "ExecuteTime", "OutboundData", "InboundData"):
            growth.take_sum(name)
        list(growth.fallbacks())
        return growth.take(torch_xla.COMPILED)

    # ------------------------------------------------------------------------------------------- hooks

    def _returned(self, name: str, arguments: tuple[Any, ...], seconds: float, frame: FrameType) -> None:
        growth, user = self._growth, user_frame(frame)
        if growth is None:
            return
        if name in torch_hooks.CLEARS:
            growth.cleared()
            return
        if name == torch_hooks.RESTORES:
            growth.restored(*arguments)
            return
        with self._lock:
            compiled = self._launched(growth, user, _function(user))
            if user is not None and self._ends_step(name, arguments, user):
                self._marked(user)
        if name in torch_hooks.READS:
            tensor = arguments[0]
            direction = TO_HOST if tensor.is_xla else TO_DEVICE
            # A lazy tensor is computed when it is read: the time is that of the graph, too.
            moved = Moved(direction, tensor.nbytes, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."),
                          max(0.0, seconds - compiled), waited=direction == TO_HOST)  # fmt: skip
            count, size = self._moved.get(direction, (0, 0))
            self._moved[direction] = count + 1, size + tensor.nbytes
            self._store.part(Transfers).take(moved, frame, self._store.part(Wall))

    def _launched(self, growth: torch_xla.Growth, user: FrameType | None, function: str) -> float:
        """Takes in the graphs that were launched; returns the seconds in which some were compiled or loaded."""
        compiled, loaded = growth.take(torch_xla.COMPILED), growth.take(torch_xla.LOADED)
        graphs = compiled + growth.take(torch_xla.LAUNCHED_AGAIN)
        if graphs:
            stats = self._store.call_stats(function)
            for _ in range(graphs):
                next(stats.counter)
        return self._compiled(growth, user, function, compiled, loaded) if compiled or loaded else 0.0

    def _compiled(
        self, growth: torch_xla.Growth, user: FrameType | None, function: str, compiled: int, loaded: int
    ) -> float:
        site, found = None if user is None else _site(user), dict[str, str]()
        if user is not None:
            with guarded("torch_xla.shapes"):
                found = torch_hooks.shapes(user)
        missed, unread, total = growth.take(torch_xla.NOT_FOUND), growth.take(torch_xla.NOT_READ), 0.0
        result = "miss" if missed or unread else "disabled"
        line, operations = self._line(site), growth.last("TensorsGraphSize")
        for phase, metric, cache, count in (
            ("compile", "CompileTime", result, compiled), ("cache_load", "PersistentCacheLoad", "hit", loaded),
        ):  # fmt: skip
            spent = growth.take_sum(metric)[1] * 1e-9
            if not count:
                continue
            total += spent
            self._store.part(Wall).move(phase, spent)
            told = min(count, MOST_AT_ONCE)
            if count > told:
                self._store.drop("compilations", count - told)
            for _ in range(told):
                cause, reason, changes = _explained(function, site, line, found, operations)
                line.variants.append(found)
                line.graphs += 1
                known: dict[str, Any] = {"time": time.time(), "function": function}
                if cache != "disabled":
                    why = NOT_LOADED if cache == "miss" and unread else None
                    seconds = spent / told if cache == "hit" else None
                    self._store.record(CacheLookup(**known, result=cache, reason=why, seconds=seconds))
                self._store.record(Compilation(
                    **known, cause=cause, reason=reason, changes=changes, phases={phase: spent / told}, cache=cache,
                    call_site=site,
                ))  # fmt: skip
        self._thread.compiled += total
        line.operations = operations
        return total

    def _line(self, site: str | None) -> _Line:
        key = (site if site in self._lines or len(self._lines) < MOST_LINES else OTHER) or GRAPHS
        return self._lines.setdefault(key, _Line())

    # ------------------------------------------------------------------------------------------- steps

    def _ends_step(self, name: str, arguments: tuple[Any, ...], user: FrameType) -> bool:
        """Returns whether a step ends: by a mark, or in a thread without any, by a read, which runs the graph, too."""
        thread = self._thread
        if name == torch_hooks.MARK and not thread.makes_marks:
            thread.makes_marks, thread.line = True, None
            thread.marks.clear()
        if name == torch_hooks.MARK or thread.makes_marks or name not in torch_hooks.READS or not arguments[0].is_xla:
            return name == torch_hooks.MARK
        line = _site(user)
        if line in thread.reads or len(thread.reads) < MOST_LINES:
            thread.reads[line] = thread.reads.get(line, 0) + 1
        return thread.reads.get(line, 0) >= FEWEST_READS

    def _marked(self, user: FrameType) -> None:
        """A step ends. The line that comes again first is that of the steps, until another comes twice without it."""
        self._locator.end()
        self._take_fallbacks()
        self._locator.look(sorted(self._sought))
        thread, now, line = self._thread, time.perf_counter(), _site(user)
        before = thread.marks.get(line)
        current = thread.marks.get(thread.line) if thread.line is not None and thread.line != line else None
        if before is not None and (current is None or current[0] < before[0]):
            thread.line = line
            self._step(user, line, now, *before)
        if before is not None or len(thread.marks) < MOST_LINES:
            thread.marks[line] = now, thread.compiled

    def _step(self, user: FrameType, line: str, now: float, began: float, compiled: float) -> None:
        loops, wall, thread = self._store.part(Loops), self._store.part(Wall), self._thread
        if not loops.names() <= set(self._names.values()):
            return  # the program reports its loops itself
        if line not in self._names:
            function = _function(user)
            taken = function in self._names.values()
            self._names[line] = f"{function}:{user.f_lineno}" if taken else function
        name = self._names[line]
        scope = wall.enter("step")
        if scope is not None:
            wall.leave(scope)
        wall.move("step", now - began)
        compiled = thread.compiled - compiled
        ended, apart = thread.ended.get(name, (began, 0.0))
        apart += began - ended + compiled
        thread.ended[name] = now, apart
        loop = loops.loop(name, wall, self._store.calls)
        loop.marks.append((threading.get_ident(), min(now, began + compiled), now, apart, apart, None, True, None))
        if len(loop.marks) > MOST_WAITING:
            loop.drain()

    # ------------------------------------------------------------------------------------- the slow tick

    def _take_fallbacks(self) -> None:
        assert self._growth is not None
        fallbacks = self._store.part(Fallbacks)
        for operator, count in self._growth.fallbacks():
            if fallbacks.ran(operator, count):
                self._sought.add(operator)

    def _located(self, operator: str, where: str) -> None:
        self._sought.discard(operator)
        self._store.part(Fallbacks).found(operator, where)

    def _take_totals(self, growth: torch_xla.Growth) -> None:
        """Takes the time in which graphs were run, and the transfers that no line was seen for."""
        ran = growth.take_samples("ExecuteTime")
        if ran:
            self._store.call_stats(GRAPHS).durations.extend(each * 1e-9 for each in ran)
        transfers = self._store.part(Transfers)
        for direction, name in ((TO_HOST, "InboundData"), (TO_DEVICE, "OutboundData")):
            count, size = growth.take_sum(name)
            known, known_size = self._moved.pop(direction, (0, 0))
            if count > known:
                transfers.add(direction, count - known, max(0, int(size) - known_size))
            elif known > count:  # the runtime has not told yet
                self._moved[direction] = known - count, max(0, known_size - int(size))


def _site(user: FrameType) -> str:
    return f"{shown(user.f_code.co_filename)}:{user.f_lineno}"


def _function(user: FrameType | None) -> str:
    if user is None:
        return GRAPHS
    return label(f"{user.f_globals.get('__name__', '<unknown>')}.{user.f_code.co_qualname}")


def _explained(
    function: str, site: str | None, line: _Line, found: _Shapes, operations: float | None
) -> tuple[str, str, tuple[Change, ...]]:
    """Returns the cause, a sentence and the changes: of the variables' tensors, all that is seen of a graph."""
    if site is None:
        text = "torch_xla compiled a graph, and no line of the program was seen to launch it: its cause is unknown."
        return "unknown", text, ()
    if not line.graphs:
        return "first_call", f"The first graph that `{function}` launches at {site}.", ()
    earlier = min(reversed(line.variants), key=lambda each: len(_changes(each, found)))
    changes = _changes(earlier, found)
    graph = f"graph {line.graphs + 1:,} of this line"
    if not changes:
        sizes = ""
        if operations is not None and line.operations is not None:
            same = operations == line.operations
            sizes = f" It has {operations:,.0f} nodes" + (
                ", as many as the one before." if same else f", and the one before {line.operations:,.0f}."
            )
        text = (
            f"`{function}` launched {graph}, and no tensor in its variables has another shape or type than before: "
            f"other operations were recorded, or a Python number became part of the graph.{sizes}"
        )
        return "unknown", text, ()
    first = changes[0]
    cause = "shape" if any(each.what == "shape" for each in changes) else "dtype"
    told = f"`{first.path}` is {first.after}, and was {first.before}"
    more = f", and {len(changes) - 1} more differ" if len(changes) > 1 else ""
    advice = cures.cure("shape", changes) if cause == "shape" else "Convert it to one type before the loop."
    return cause, f"In `{function}`, {told}{more}: {graph}. {advice}", changes


def _changes(before: _Shapes, after: _Shapes) -> tuple[Change, ...]:
    found = []
    for path, now in after.items():
        was = before.get(path, now)
        if was != now:
            what = "shape" if was.partition("[")[0] == now.partition("[")[0] else "dtype"
            found.append(Change(path, what, was, now))
    return tuple(found)


source = TorchXla
