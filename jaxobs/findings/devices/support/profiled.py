"""The loop that goes on, as the latest samples of the devices' time show it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxobs.facts.loops import LoopState
from jaxobs.facts.profile_samples import ProfileSample, SampledFunction
from jaxobs.facts.profiles import OperationTime
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.cases import Case, Scene

FEWEST = 5
"""Samples that say something: a single one is a few steps, which may have been any."""
LEAST_LOOKS = 0.25
"""Share of the looks at the program's thread that a sample should have: with fewer, the machine has too much else to
do to say why its devices were idle."""
LOOKS_A_SECOND = 200.0
MOST = 8
LEAST_SECONDS = 1.0
"""Time of a loop that is worth a finding."""


@dataclass(frozen=True, slots=True)
class Profiled:
    """The latest samples of one loop, in which its devices computed."""

    loop: str
    state: LoopState | None
    """None if it is not known any more."""
    samples: tuple[ProfileSample, ...]

    def idle_share(self, reason: str) -> float:
        """The typical share of the devices' time for which they were idle for this reason."""
        return statistics.median(
            sum(each.seconds for each in sample.idle if each.reason == reason) / _time(sample)
            for sample in self.samples
        )  # fmt: skip

    def exposed_share(self) -> float:
        """The typical share of the devices' time in which they did nothing but exchange data."""
        return statistics.median((sample.exposed_seconds or 0.0) / _time(sample) for sample in self.samples)

    def place(self, reason: str) -> tuple[str, float] | None:
        """Returns where the program's thread was most often in idle time of a reason, and the share of that."""
        shares: dict[str, float] = defaultdict(float)
        for sample in self.samples:
            for place in sample.places:
                if place.reason == reason:
                    shares[place.where] += place.share
        if not shares:
            return None
        where = max(shares, key=lambda each: shares[each])
        return where, shares[where] / sum(shares.values())

    def work_share(self, seconds: Callable[[SampledFunction], float | None]) -> float:
        """The typical share of the devices' work that this is, added up over functions."""
        return statistics.median(
            sum(seconds(each) or 0.0 for each in sample.functions) / (sample.device_seconds or 1.0)
            for sample in self.samples
        )  # fmt: skip

    def lost_by_work(self, share: float) -> float:
        """Returns how much of the loop's time so far that share of the devices' work is."""
        busy = statistics.median(sum(each.busy.values()) / len(each.busy) for each in self.samples)
        return self.lost_seconds(share * busy)

    def largest(self, wanted: Callable[[OperationTime], object]) -> list[OperationTime]:
        """Operations of the latest sample, most time first; at most three."""
        found = [each for each in self.samples[-1].operations if wanted(each)]
        return sorted(found, key=lambda each: -each.device_seconds)[:3]

    def case(
        self, share: float, *, lost: float, summary: str, advice: str, evidence: Sequence[str], where: str | None,
        subject: str = "", **data: float | str,
    ) -> Case:  # fmt: skip
        """Returns a case about a share of the devices' time, which costs `lost` seconds; `data` are further figures."""
        samples, recorded = len(self.samples), sum(each.window_seconds for each in self.samples)
        known = f"That is the median of the latest {samples} samples, {recorded:.3g} s in all."
        return Case(
            function=self.loop, subject=subject, severity="info", summary=summary, advice=advice, where=where,
            count=samples, seconds=lost, since=self.samples[0].time, evidence=[known, *evidence],
            data={"loop": self.loop, **data, "share": share, "samples": samples},
        )  # fmt: skip

    def lost_seconds(self, share: float) -> float:
        """Returns how much of the loop's time so far that share is; of the samples' where it isn't known."""
        if self.state is not None and self.state.mean_seconds is not None:
            return share * self.state.mean_seconds * self.state.steps
        return share * sum(each.window_seconds for each in self.samples)

    @property
    def on_cpus(self) -> bool:
        """Whether the loop's devices are CPUs, which share their cores with each other and with other programs."""
        return any(each.startswith("cpu") for each in self.samples[-1].busy)


def described(operation: OperationTime) -> str:
    """An operation as a line of evidence: where it comes from, and its share."""
    at = f" at {operation.source}" if operation.source else ""
    return f"`{operation.scope or operation.operation}`{at}: {operation.share:.0%} of the devices' work."


def in_samples(*cases: Callable[[Profiled], Case | None]) -> Callable[[Scene], Iterator[Case]]:
    """Returns the `find` of a kind: what it makes of the samples of the loop that goes on, if there are enough."""

    def find(scene: Scene) -> Iterator[Case]:
        found = profiled(scene.snapshot)
        if found is not None:
            yield from filter(None, (case(found) for case in cases))

    return find


def in_work(
    least: float, seconds: Callable[[SampledFunction], float | None], wanted: Callable[[OperationTime], object],
    what: str, advice: str,
) -> Callable[[Scene], Iterator[Case]]:  # fmt: skip
    """Returns the `find` of a kind about a part of the devices' work, from the share `least` on."""

    def case(found: Profiled) -> Case | None:
        share = found.work_share(seconds)
        lost = found.lost_by_work(share)
        if share < least or lost < LEAST_SECONDS:
            return None
        largest = found.largest(wanted)
        return found.case(
            share, lost=lost, summary=f"In the steps of `{found.loop}`, {share:.0%} of the devices' work is {what}.",
            advice=advice, where=largest[0].source if largest else None, evidence=list(map(described, largest)),
        )  # fmt: skip

    return in_samples(case)


def profiled(snapshot: Snapshot) -> Profiled | None:
    latest = snapshot.profile.latest if snapshot.profile is not None else ()
    if not latest or latest[-1].loop is None:
        return None
    loop = latest[-1].loop
    samples = [each for each in latest if each.loop == loop and _says_something(each)]
    if len(samples) < FEWEST:
        return None
    state = next((each for each in snapshot.loops if each.name == loop), None)
    return Profiled(loop, state, tuple(samples[-MOST:]))


def _says_something(sample: ProfileSample) -> bool:
    enough = sample.looks >= LEAST_LOOKS * LOOKS_A_SECOND * sample.window_seconds
    return enough and any(sample.busy.values())


def _time(sample: ProfileSample) -> float:
    return sample.window_seconds * len(sample.busy)
