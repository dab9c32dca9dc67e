"""Fleet: each tick tells the other processes of the job how far this one is, and looks whether all go the same way.

They meet in the key-value store of JAX's own coordination service, which every `jax.distributed` job has. Process 0
reads what all tell, the others what process 0 tells, so that the traffic grows with the number of processes and not
with its square. The network is asked on a thread of its own, and nobody waits for it. Between two ticks the counts are
looked at on a thread of their own, and a new program that spans processes is reported at once: its first run may hang.
"""

import dataclasses
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.guard import guard, guarded, internal_error
from jaxobs.base.questions import Question, no_more_threads
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.findings.fleet.support.addresses import Address, Addresses
from jaxobs.findings.fleet.support.digest import MOST_PROCESSES, Digest, Listed, Programs, decode, decode_listed
from jaxobs.findings.fleet.support.looks import Looker, Looks
from jaxobs.findings.fleet.support.progress import Excess, Pace, Progress
from jaxobs.findings.fleet.support.view import View, seconds
from jaxobs.findings.standing import Standing
from jaxobs.recorder import last_minutes, user_errors
from jaxobs.recorder.last_minutes import Ending
from jaxobs.recorder.report_files import ReportFiles
from jaxobs.sources.support.source import Subscriber, keep
from jaxobs.state.loops import Loops
from jaxobs.state.wall import Wall

MOST_DETAILS = 16
"""Processes whose programs are read by name in one tick."""
WAIT_SECONDS = 0.1
"""Seconds that a tick waits for the others' digests; what comes later is looked at by the next."""
PROMPT_WAIT_SECONDS = 1.0
"""Seconds to wait on the thread that has nothing else to do."""
LAST_WAIT_SECONDS = 0.5
_BUSY_SECONDS = 0.05
SILENT_SECONDS = 60.0
WITHOUT_USUAL = 10.0
"""Times `stuck_seconds` where too few steps were made to know how long one takes."""
MOST_THREADS = 12
MOST_SITES = 256
PAUSES = 2.0
"""Times as long as a typical step, after which a process without steps pauses."""
RESTS = 3.0
"""Times as long as it has rested before, after which a process whose loop was found is stuck."""

_FOLDER = "jaxobs/1"
_THREAD = "jaxobs-fleet"


@dataclass(frozen=True, slots=True)
class _Heard:
    """Digests and lists that the others told."""

    digests: Mapping[int, Digest]
    differing: Mapping[int, Listed | None]


class FleetSource(Subscriber):
    """The source: digests out and in, findings across processes into the store."""

    def stop(self) -> None:
        """Tells and asks no more."""
        super().stop()
        self.ending()

    def ending(self) -> None:
        """The program ends: what was not reported is reported now, and the others are not asked any more."""
        if self._looker is not None and self._listed != self._programs.count:
            self._see(LAST_WAIT_SECONDS, between=True)
        if self._lock.acquire(timeout=_BUSY_SECONDS):
            try:
                keep(self._store, self._findings.at_end())
            finally:
                self._lock.release()
        self._over = True
        if self._looker is not None:
            self._looker.stop()
        if self._question is not None:
            self._question.answered(time.monotonic() + LAST_WAIT_SECONDS)

    def _begin(self) -> None:
        self._host = platform.node()
        self._lock, self._beginning = threads.Lock(), threads.Lock()
        self._looker: Looker | None = None
        self._programs = Programs()
        self._pace, self._looks, self._findings = Pace(), Looks(), Standing(View)
        self._progress = Progress()
        self._sites: dict[str, None] = {}
        """Lines from which compiled functions are called, the latest last."""
        self._question: Question[_Heard] | None = None
        self._heard: Mapping[int, Digest] = {}
        self._last_heard: dict[int, tuple[int, float]] = {}
        self._differing: dict[int, Listed | None] = {}
        self._excess = Excess()
        self._listed = -1
        """Number of programs that had been reported by name."""
        self._tick = 0
        self._told_stuck: str | None = None
        self._threads: Mapping[str, tuple[str, ...]] = {}
        self._report: str | None = None
        self._files = ReportFiles(self._store, "stuck")
        self._over = False

    @guard("fleet.program")
    def _on_event(self, event: Event) -> None:
        if not isinstance(event, Compilation):
            return
        if not event.eager:
            self._called_at(event.library_site or event.call_site)
        if event.spans_processes:
            self._progress.compiled()
            self._programs.add(event.function, event.fingerprint or "?")
            index, count = internals.process_index_and_count()
            if not self._over and self._together(index, count):
                self._begin_looking(count)
                if self._looker is not None:
                    self._looker.wake()

    def _called_at(self, site: str | None) -> None:
        if site is not None:
            self._sites.pop(site, None)
            if len(self._sites) >= MOST_SITES:
                self._sites.pop(next(iter(self._sites)), None)
            self._sites[site] = None

    def _together(self, index: int, count: int) -> bool:
        return count > 1 and index < MOST_PROCESSES and internals.distributed.connected()

    def _begin_looking(self, count: int) -> None:
        with self._beginning, no_more_threads():
            if self._looker is None:
                interval = self._store.settings.sample_interval
                self._looker = Looker(interval, count, self._look, lambda: self._see(PROMPT_WAIT_SECONDS, between=True))

    def _look(self) -> None:
        with self._lock:
            self._progress.look(self._store)
            now = time.monotonic()
            self._pace.see(now, self._progress.steps, self._progress.seconds)
            typical = self._progress.typical(self._pace.loop)
            self._looks.look(self._sites, pauses=typical is not None and self._pace.idle(now) > PAUSES * typical)

    def sample(self) -> None:
        """Takes one view of the job, in one process of it or alone."""
        self._progress.tick()
        self._see(WAIT_SECONDS)

    def _see(self, wait: float, between: bool = False) -> None:
        if self._over or not internals.backends_awake():
            return
        index, count = internals.process_index_and_count()
        together = self._together(index, count)
        if together:
            self._begin_looking(count)
        if self._looker is None:
            self._look()
        if self._lock.acquire(timeout=_BUSY_SECONDS):  # else another thread is at it
            try:
                self._view(index, count, together, wait, between)
            finally:
                self._lock.release()

    def _view(self, index: int, count: int, together: bool, wait: float, between: bool) -> None:
        now = time.monotonic()
        after = self._stuck_after(now, together)
        own = self._own(index, now)
        if together:
            with no_more_threads():
                self._ask(own, wait)
        silent = self._silent(now) if together and index == 0 else {}
        self._look_where_it_is(own, after)
        view = View(
            time=time.time(), own=own, count=count, others=self._heard, silent=silent, programs=self._programs.all(),
            differing=dict(self._differing), stuck_after=after, threads=self._threads, report=self._report,
            interval=self._store.settings.sample_interval,
        )  # fmt: skip
        keep(self._store, self._findings.see(view, between))

    def _own(self, index: int, now: float) -> Digest:
        self._tick += 1
        count, loop = self._programs.count, self._pace.loop
        return Digest(
            process=index, tick=self._tick, host=self._host, pid=os.getpid(), programs=count,
            chain=self._programs.chain(count), loop=loop, found=self._progress.found(loop),
            exact=self._progress.exact(loop), steps=self._pace.steps, usual=self._pace.usual,
            typical=self._progress.typical(loop),
            looks=self._pace.looks, idle=self._pace.idle(now), waiting=self._looks.waiting,
            waiting_in_steps=self._looks.waiting_in_steps, line=self._looks.line, inside=self._looks.inside,
            at=self._looks.at,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------- the others

    def _ask(self, own: Digest, wait: float) -> None:
        """Tells the others, and takes in what they told. One question at a time."""
        if self._question is None:
            self._question = Question(lambda: self._talk(own), _THREAD)
        if not self._question.answered(time.monotonic() + wait):
            return
        question, self._question = self._question, None
        if question.answer is not None:
            self._heard = {**self._heard, **question.answer.digests}
            told = {process: Address(each.host, each.address) for process, each in question.answer.digests.items()}
            self._store.part(Addresses).heard(told)
            self._differing |= question.answer.differing
        elif question.error is not None and not self._over:
            # The service is gone, or does not answer: JAX itself will say so.
            if isinstance(question.error, RuntimeError):
                self._store.drop("other_processes")
            else:
                internal_error("fleet", question.error)

    def _talk(self, own: Digest) -> _Heard:
        """On a thread of its own: the network may hang."""
        distributed = internals.distributed
        if own.programs != self._listed:
            distributed.publish(f"{_FOLDER}/programs/{own.process}/now", self._programs.listed().encode())
            self._listed = own.programs
        address = self._store.part(Addresses).own(distributed.coordinator()).address
        own = dataclasses.replace(own, address=address)
        distributed.publish(f"{_FOLDER}/digest/{own.process}/now", own.encode())
        texts = distributed.read(f"{_FOLDER}/digest" if own.process == 0 else f"{_FOLDER}/digest/0")
        digests = [found for found in map(decode, texts.values()) if found is not None]
        others = {each.process: each for each in digests if each.process != own.process}
        new = [p for p, each in others.items() if self._differing.get(p) is None and self._differs(own, each)]
        differing = {process: self._listed_by(process) for process in new[:MOST_DETAILS]}
        return _Heard(others, differing)

    def _differs(self, own: Digest, other: Digest) -> bool:
        return self._programs.differ(other) or self._excess.see(own, other)

    def _listed_by(self, process: int) -> Listed | None:
        texts = internals.distributed.read(f"{_FOLDER}/programs/{process}")
        return next(iter(filter(None, map(decode_listed, texts.values()))), None)

    def _silent(self, now: float) -> dict[int, float]:
        """Processes that have said nothing new for long, by our own clock."""
        for process, digest in self._heard.items():
            known = self._last_heard.get(process)
            if known is None or known[0] != digest.tick:
                self._last_heard[process] = digest.tick, now
        least = SILENT_SECONDS + self._store.settings.stuck_seconds
        if not self._store.settings.stuck_steps:
            return {}
        return {p: now - heard for p, (_, heard) in self._last_heard.items() if now - heard >= least}

    # --------------------------------------------------------------------------------------------- stuck

    def _stuck_after(self, now: float, together: bool) -> float | None:
        """Seconds without a step after which this process is stuck; None where it may have other things to do."""
        settings = self._store.settings
        inside = self._store.part(Loops).any and self._store.part(Wall).category == "step"
        if not settings.stuck_steps or not self._pace.steps or not (together or inside):
            return None
        usual = self._pace.usual
        if usual is None:
            least = settings.stuck_seconds * WITHOUT_USUAL
        else:
            least = max(settings.stuck_steps * usual, settings.stuck_seconds)
        if self._progress.found(self._pace.loop):
            least = max(least, RESTS * self._pace.longest)
        if self._pace.idle(now) >= least and self._store.in_progress():
            self._pace.rest(now)
        return least

    def _look_where_it_is(self, own: Digest, after: float | None) -> None:
        """The threads of a process that has just become stuck, and the text file with them, once for each time."""
        if after is None or own.idle < after:
            self._told_stuck, self._threads, self._report = None, {}, None
            return
        if (stalled := f"{own.loop} {own.steps}") == self._told_stuck:
            return
        self._told_stuck = stalled
        self._threads = user_errors.thread_lines(MOST_THREADS)
        with guarded("fleet.report"):
            self._report = self._write(own)

    def _write(self, own: Digest) -> str | None:
        now = time.time()
        what = f"nothing: it is alive, but has made no step for {seconds(own.idle)}"
        ending = Ending(time=now, what=what, threads=self._threads)
        snapshot, (events, _, _) = self._store.snapshot(fresh=False), self._store.events()
        return self._files.write(now, own.process, last_minutes.text(ending, snapshot, events))


source = FleetSource
