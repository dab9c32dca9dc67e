"""Compilations: JAX's phase and cache events of each thread, joined at the end of a compile into one fact.

JAX calls the listeners synchronously on the thread that compiles. What they report since the last miss of that
thread waits here; when a compile ends, JAX's own miss frame is still on the stack and says whose it was.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jaxobs import internals
from jaxobs.base import notebooks, threads
from jaxobs.base.guard import guard, guarded
from jaxobs.facts.compilations import EAGER, LONG_SECONDS, Compilation, OpenCompilation
from jaxobs.findings.compilations.support import sizes
from jaxobs.internals import Call, Listeners, Lookup, Miss, Phase
from jaxobs.reasons import explanation, naming, recorded
from jaxobs.reasons import signature as signatures
from jaxobs.recorder import flight_recorder, user_errors
from jaxobs.sources.support.cache_lookups import CacheLookups
from jaxobs.sources.support.programs import Programs
from jaxobs.state.routes import Routes
from jaxobs.state.store import Store
from jaxobs.state.wall import Wall

MOST_WAITING = 64
MOST_NAMES = 4096
MOST_GROWN = 16
"""Changes of one compilation that are compared with its results."""
SELECTS_SECONDS = 0.03
"""Seconds to trace, lower and compile from which on a program is searched for conditions that `jax.vmap` maps."""
DEAR_SECONDS = 1.0
"""Programs that took so long are asked for their cost at once: XLA takes milliseconds to tell."""
REMOVED = (
    "Something called jax.monitoring.clear_event_listeners(), which removes everyone's listeners. "
    "jaxobs registered its own again. It did not see compilations in between."
)


@dataclass(slots=True)
class _Ended:
    """A trace or lowering that ended and waits for its compile."""

    phase: str
    name: str
    started: float
    ended: float
    seconds: float
    call: Call | None = None
    """Call of an ahead-of-time lowering or trace, its arguments left out."""
    signature: signatures.Signature | None = None


class _Thread(threading.local):
    def __init__(self) -> None:
        self.waiting: list[_Ended] = []
        self.finished: deque[tuple[float, float]] = deque(maxlen=MOST_WAITING)
        """Start and seconds of what was compiled on this thread, which may lie inside a trace that is still open."""
        self.lookup = internals.Lookup()
        self.name = f"{threading.current_thread().name} ({threading.get_ident()})"
        self.ident = threading.get_ident()


class Compilations:
    """The source: listeners in, `Compilation` and `CacheLookup` events out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._explainer = explanation.Explainer()
        self._lookups = CacheLookups(store)
        self._programs = Programs(store)
        self._lock = threads.Lock()
        self._names: dict[str, str] = {}
        self._thread = _Thread()
        self.listeners = Listeners(self._on_event, self._on_ended, self._on_started)

    def start(self) -> None:
        """Begins to listen. Idempotent."""
        self._explainer.late = internals.backends_awake()
        internals.context.first_look()
        internals.context.generation()
        internals.register(self.listeners)
        for path in internals.other_copies(self.listeners):
            self._store.note(f"Another copy of jaxobs, {path}, also listens in this process; each counts for itself.")

    def stop(self) -> None:
        """Stops listening, and leaves everybody else's listeners alone."""
        internals.unregister(self.listeners)
        self._store.nothing_open()

    def sample(self) -> None:
        """Puts our listeners back if somebody removed them; reads one program that was compiled lately."""
        self._repair()
        self._programs.sample()

    def after_fork(self) -> None:
        """In a forked child: fresh locks, nothing remembered of the parent's threads."""
        self._lock = threads.Lock()
        self._thread = _Thread()
        self._lookups.after_fork()
        self._programs = Programs(self._store)

    def _repair(self) -> None:
        if internals.register(self.listeners):
            self._store.nothing_open()
            self._store.note(REMOVED)

    # -------------------------------------------------------------------------------------- listeners

    @guard("compilations.started")
    def _on_started(self, event: str, value: float, **kwargs: Any) -> None:
        phase = internals.PHASE_OF_EVENT.get(event)
        if phase is None:
            return
        self._repair()
        name = internals.plain_name(str(kwargs.get("fun_name", "<unknown>")))
        if phase == "compile":
            self._thread.lookup = internals.Lookup()
        started = OpenCompilation(self._names.get(name, name), phase, float(value), self._thread.name)
        frame = sys._getframe(1)
        self._store.begin(self._thread.ident, started, lambda it: self._begun(it, frame))
        self._store.part(Wall).phase_began(phase)

    def _begun(self, phase: OpenCompilation, frame: Any) -> OpenCompilation:
        """Returns the first phase of a compilation with its function and line."""
        with guarded("begun"):
            fun, site = internals.read_begun(frame)
            known = naming.function_name(fun) if fun is not None and not naming.is_primitive(fun) else None
            return replace(phase, function=known or phase.function, call_site=site)
        return phase

    @guard("compilations.event")
    def _on_event(self, event: str, **kwargs: Any) -> None:
        lookup = self._thread.lookup
        if event == internals.CACHE_REQUEST:
            self._thread.lookup = internals.cache_lookups.asked(sys._getframe(1))
        elif event == internals.CACHE_HIT:
            lookup.hit = True
        elif event == internals.CACHE_WRITE:
            internals.cache_lookups.writing(lookup, sys._getframe(1))

    @guard("compilations.ended")
    def _on_ended(self, event: str, duration: float, **kwargs: Any) -> None:
        phase = internals.PHASE_OF_EVENT.get(event)
        if phase is None:
            if event == internals.CACHE_LOAD_SECONDS:
                self._thread.lookup.load_seconds = duration
            elif event == internals.CACHE_SAVED_SECONDS:
                self._thread.lookup.jax_saved_seconds = duration
            return
        now = time.time()
        frame = sys._getframe(1)
        end = internals.phase_ended(frame, duration, kwargs.get("fun_name"), now)
        self._store.end(self._thread.ident, phase, now if end.failed else None)
        loaded = phase == "compile" and self._thread.lookup.hit
        self._store.part(Wall).phase_ended(phase, duration, loaded=loaded)
        if phase != "compile":
            self._phase_ended(phase, end, duration, now, frame)
        else:
            self._compile_ended(end, duration, now, frame)

    def _phase_ended(self, phase: str, end: Phase, duration: float, now: float, frame: Any) -> None:
        waiting = self._thread.waiting
        # Before JAX 0.10 inner functions report their traces inside the outer one's: they are part of it.
        waiting[:] = [each for each in waiting if each.started < end.started or each.ended <= end.started]
        if end.failed:
            self._failed(phase, end, frame)
            return
        if phase == "trace" and not internals.belongs_to_a_compile(frame):
            return
        ended = _Ended(phase, end.name, end.started, now, max(0.0, duration - self._inside(end.started)))
        ahead = internals.read_ahead_of_time(frame)
        if ahead is not None:
            ended.call = self._called(ahead)
            ended.signature = self._signature(ended.call)
            ended.call.args, ended.call.kwargs = None, {}
        waiting.append(ended)
        del waiting[:-MOST_WAITING]

    def _compile_ended(self, end: Phase, duration: float, now: float, frame: Any) -> None:
        lookup, self._thread.lookup = self._thread.lookup, internals.Lookup()
        if end.failed:
            self._failed("compile", end, frame)
            return
        traced, lowered = self._claim(end)
        miss = internals.read_miss(frame)
        call = self._called(miss)
        signature = self._signature(call)
        for ahead in (lowered, traced):
            if call.fun is None and ahead is not None and ahead.call is not None:
                call, signature = ahead.call, ahead.signature
        phases = {each.phase: each.seconds for each in (traced, lowered) if each is not None}
        internals.cache_lookups.ended(lookup, duration, miss.executable)
        phases["cache_load" if lookup.hit else "compile"] = duration
        first = min([each.started for each in (traced, lowered) if each is not None], default=end.started)
        self._thread.finished.append((first, sum(phases.values())))
        self._store.part(Wall).compiled_at(miss.call_site, phases)
        self._record(end, miss, call, signature, phases, lookup, now)

    @guard("compilations.failed")
    def _failed(self, phase: str, end: Phase, frame: Any) -> None:
        """Shows what a phase failed with to the flight recorder, which says whether memory ran out."""
        if end.error is None or user_errors.parsed_error(end.error) is None:
            return
        miss = internals.read_miss(frame)
        call = self._called(internals.read_ahead_of_time(frame) or miss)
        eager = miss.eager or (call.fun is not None and internals.is_jax_function(call.fun))
        function = EAGER if eager else self._function_name(end.name, call, eager)
        seen = flight_recorder.Seen(function, call, miss.call_site, "compile" if phase != "trace" else None)
        flight_recorder.of(self._store).saw(end.error, seen)

    def _record(
        self, end: Phase, miss: Miss, call: Call, signature: signatures.Signature | None, phases: dict[str, float],
        lookup: Lookup, now: float,
    ) -> None:  # fmt: skip
        eager = miss.eager or (call.fun is not None and internals.is_jax_function(call.fun))
        function = self._function_name(end.name, call, eager)
        why = explanation.Explanation("unknown", f"`{function}` compiled; jaxobs failed to find out why.")
        lines = (*miss.library_sites, miss.call_site or "") if eager else ()
        given_up = 0
        with self._lock, guarded("explain"):
            given_up = -self._explainer.history.given_up
            why = self._explainer.explain(
                function,
                call,
                signature,
                miss.transform,
                phases=frozenset(phases),
                lines=lines,
                serving=bool(self._store.part(Routes).in_flight()),
                cell=notebooks.running_cell(),
            )
            given_up += self._explainer.history.given_up
        if given_up > 0:
            self._store.drop("signatures", given_up)
        program = internals.Identity()
        with guarded("fingerprint"):
            program = internals.identify(miss.module)
        spans = False
        with guarded("spans_processes"):
            spans = not eager and internals.spans_processes(miss.module, miss.executable)
        flops, accessed, memory = None, None, dict[str, int]()
        if not eager and self._costs_are_read(miss.executable, sum(phases.values())):
            with guarded("program"):
                memory = internals.executables.memory(miss.executable)
                flops, accessed = internals.executables.cost(miss.executable)
        repeated, loop_site, constant_bytes = dict[str, int](), None, 0
        if not eager and not lookup.hit and sum(phases.values()) >= LONG_SECONDS:
            with guarded("repeated"):
                repeated, loop_site = internals.repeated(miss.module, miss.call_site)
                constant_bytes = program.size if internals.is_small(miss.module) else 0
        grown: tuple[str, ...] = ()
        if not eager and why.cause == "shape":
            with guarded("grown"):
                grown = sizes.grown(why.changes[:MOST_GROWN], internals.result_shapes(miss.module))
                why = explanation.returned_longer(function, why, grown) if grown else why
        if lookup.result != "disabled":
            self._store.record(self._lookups.fact(lookup, function, program.fingerprint, program.in_key, now))
        unsaved, unsaved_detail = lookup.unsaved or (None, None)
        written = None
        if self._store.settings.event_log and not eager and miss.transform is None:
            with guarded("recorded"):
                written = recorded.record(call.fun, signature, values=self._store.settings.static_values)
        event = self._store.record(
            Compilation(
                time=now, function=function, cause=why.cause, reason=why.reason, changes=why.changes, phases=phases,
                cache=lookup.result, uncached_because=unsaved, uncached_detail=unsaved_detail,
                call_site=miss.call_site, library_site=next(iter(miss.library_sites), None),
                fingerprint=program.fingerprint, spans_processes=spans, eager=eager, by_rerun=why.by_rerun,
                transform=miss.transform, flops=flops, bytes_accessed=accessed, memory=memory, repeated=repeated,
                loop_site=loop_site, constant_bytes=constant_bytes, grown=grown, signature=written,
            )
        )  # fmt: skip
        self._programs.loaded(event, miss.executable)
        if not eager and sum(phases.values()) >= SELECTS_SECONDS:
            with guarded("selected"):
                self._store.set_program(function, now, **internals.selected(miss.module)._asdict())

    def _costs_are_read(self, executable: Any, seconds: float) -> bool:
        """Returns whether XLA is asked at once for costs: on accelerators, and after expensive compiles."""
        if self._store.costs_wanted > 0 or seconds >= DEAR_SECONDS:
            return True
        return any(device.platform != "cpu" for device in internals.executables.devices(executable)[:1])

    def hand_over(self, since: float) -> Callable[[], None]:
        """Takes away what was lowered on this thread since then; called, the result lets it wait on another thread."""
        waiting = self._thread.waiting
        ended = [each for each in waiting if each.started >= since]
        waiting[:] = [each for each in waiting if each.started < since]
        return lambda: self._thread.waiting.extend(ended)

    # ---------------------------------------------------------------------------------------- helpers

    def _inside(self, started: float) -> float:
        """Seconds of whole compilations since then on this thread: counted as their own, not once more outside."""
        finished = self._thread.finished
        inside = 0.0
        while finished and finished[-1][0] >= started:
            inside += finished.pop()[1]
        return inside

    def _claim(self, end: Phase) -> tuple[_Ended | None, _Ended | None]:
        """The latest trace and lowering of that name that wait on this thread; they wait no longer."""
        waiting = self._thread.waiting
        found: dict[str, _Ended] = {}
        for position in range(len(waiting) - 1, -1, -1):
            each = waiting[position]
            if each.name == end.name and each.phase not in found and each.ended <= end.started + 1e-3:
                if each.phase == "trace" and "lower" not in found:
                    break
                found[each.phase] = waiting.pop(position)
        return found.get("trace"), found.get("lower")

    def _called(self, miss: Miss) -> Call:
        with guarded("called"):
            return internals.called(miss)
        return Call(miss.fun, miss.fun, None, {})

    def _signature(self, call: Call) -> signatures.Signature | None:
        with guarded("signature"):
            return signatures.take(
                call,
                static_values=self._store.settings.static_values,
                context=internals.context.read(),
                generation=internals.context.generation(),
            )
        return None

    def _function_name(self, name: str, call: Call, eager: bool) -> str:
        """`module.qualname` where the function is in sight or was before, else JAX's name."""
        if eager:
            return name
        if call.fun is None:
            return self._names.get(name, name)
        known: str | None = None
        with guarded("function_name"):
            known = naming.function_name(call.fun)
        if known is None:
            return name
        if len(self._names) < MOST_NAMES:
            self._names[name] = known
        return known


source = Compilations
