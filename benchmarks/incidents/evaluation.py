"""Every scenario diagnosed, compared with the truth; and the table of that."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.incidents.baselines import BASELINES
from benchmarks.incidents.scenarios import EPOCH, OPEN, Scenario, laid_out, moment, open_incidents, scenarios
from jaxobs.facts.events import timestamp
from jaxobs.ops.diagnosis import diagnose, gather
from jaxobs.ops.diagnosis.evidence import Evidence
from jaxobs.ops.diagnosis.result import CAUSE, LIKELY, Diagnosis

MOST_ONSET_ERROR = 60.0
"""Seconds by which the onset that is said may differ from the true one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Diagnosis of a scenario, beside the truth."""

    scenario: Scenario
    evidence: Evidence
    diagnosis: Diagnosis
    baselines: dict[str, str | None]

    @property
    def wrong(self) -> str | None:
        scenario, said = self.scenario, self.diagnosis
        named = [each.id for each in said.causes]
        if said.verdict != scenario.expect and (said.verdict, scenario.expect) != (LIKELY, CAUSE):
            return f"{said.verdict} ({', '.join(named) or 'nothing named'}) instead of {scenario.expect}"
        if not scenario.causes:
            return None
        if named[:1] != list(scenario.causes[:1]):
            return f"{named[0]} instead of {scenario.causes[0]}"
        if missed := set(scenario.causes) - set(named):
            return f"{', '.join(sorted(missed))} not named"
        if self.extra:
            return f"{', '.join(self.extra)} named as well"
        if scenario.component is not None and said.causes[0].component != scenario.component:
            return f"{said.causes[0].component} instead of {scenario.component}"
        if scenario.onset is not None and self.onset_error > MOST_ONSET_ERROR:
            return f"onset {said.causes[0].onset or 'unknown'} instead of {timestamp(scenario.onset)}"
        if missing := set(scenario.victims) - set(said.causes[0].victims):
            return f"{', '.join(sorted(missing))} not listed as victims"
        return None

    @property
    def onset_error(self) -> float:
        """Seconds between the onset of the first cause and the true one; infinite where none is said."""
        said = self.diagnosis.causes[0].onset if self.diagnosis.causes else None
        if said is None or self.scenario.onset is None:
            return math.inf
        return abs(moment(said) - self.scenario.onset)

    @property
    def extra(self) -> list[str]:
        """Causes that are named and are none."""
        return [each.id for each in self.diagnosis.causes if each.id not in self.scenario.causes]

    def baseline_is_right(self, name: str) -> bool:
        """Whether a baseline names the cause, or rightly none."""
        said = self.baselines[name]
        return said == self.scenario.causes[0] if self.scenario.causes else said is None


def replay(scenario: Scenario) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, laid_out(scenario, Path(folder)) as inputs:
        evidence = gather(inputs, now=EPOCH, timeout=60.0)
    said = {name: baseline(evidence) for name, baseline in BASELINES.items()}
    return Outcome(scenario, evidence, diagnose(evidence), said)


def replay_all() -> list[Outcome]:
    """All scenarios."""
    return [replay(each) for each in scenarios()]


def families(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes by family."""
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(each.scenario.family, []).append(each)
    return found


def interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not count:
        return 0.0, 1.0
    z, share = 1.96, right / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def table(outcomes: Sequence[Outcome]) -> str:
    """The result as Markdown: by family, then together, beside the baselines."""
    names = list(BASELINES)
    lines = [
        f"| family | scenarios | right | 95 % interval | {' | '.join(names)} |",
        f"|---|---:|---:|---:|{'---:|' * len(names)}",
    ]
    rows = [*families(outcomes).items(), ("**all**", list(outcomes))]
    for family, each in rows:
        right = sum(one.wrong is None for one in each)
        others = " | ".join(str(sum(one.baseline_is_right(name) for one in each)) for name in names)
        low, high = interval(right, len(each))
        lines.append(f"| {family.replace('_', ' ')} | {len(each)} | {right} | {low:.0%} to {high:.0%} | {others} |")
    return "\n".join(lines)


def held_out(outcomes: Sequence[Outcome]) -> list[Scenario]:
    """Returns what was written after the diagnoses, with the incidents that are still diagnosed wrongly."""
    return [*(each.scenario for each in outcomes if each.scenario.held_out), *open_incidents()]


def rounds(outcomes: Sequence[Outcome]) -> str:
    """As Markdown: how many of each round were right at the first try."""
    held = held_out(outcomes)
    lines = ["| round | scenarios | right at the first try | controls among them | controls blamed or doubted |"]
    lines.append("|---:|---:|---:|---:|---:|")
    for number in sorted({each.round for each in held if each.round is not None}):
        these = [each for each in held if each.round == number]
        right = sum(each.first_try == "right" for each in these)
        healthy = [each for each in these if each.is_control]
        doubted = sum(each.first_try != "right" for each in healthy)
        lines.append(f"| {number} | {len(these)} | {right} ({right / len(these):.0%}) | {len(healthy)} | {doubted} |")
    return "\n".join(lines)


_JUDGED = {
    "top cause right": (1, "right"),
    "half right: the area, and not the mechanism": (1, "half"),
    "wrong": (1, "wrong"),
    "no cause named": (1, "silent"),
    "the fix would have solved it": (2, "solved"),
}
"""By row: which word of a judgement, and which one counts."""


def judged(outcomes: Sequence[Outcome]) -> str:
    """As Markdown: answers that a reader judged who knew the truth, by round, before its changes and after them."""
    columns: dict[tuple[int, int], list[tuple[bool, list[str]]]] = {}
    for scenario in held_out(outcomes):
        for side, told in enumerate(scenario.judged):
            columns.setdefault((scenario.round or 0, side), []).append((scenario.is_control, told.split()))
    names = [f"round {number}, {'after' if side else 'before'}" for number, side in sorted(columns)]
    faults = [[said for healthy, said in columns[each] if not healthy] for each in sorted(columns)]
    controls = [[said[1] for healthy, said in columns[each] if healthy] for each in sorted(columns)]
    rows: dict[str, Sequence[object]] = {"faults that nobody had read": names, "judged": [len(each) for each in faults]}
    for name, (place, word) in _JUDGED.items():
        rows[name] = [sum(said[place] == word for said in each) for each in faults]
    rows["healthy jobs blamed"] = [f"{sum(each != 'right' for each in some)} of {len(some)}" for some in controls]
    for verdict in ("cause", "likely"):
        ways = [[said[1] for said in each if said[0] == verdict] for each in faults]
        right = [f"{each.count('right')} and {each.count('half')} of {len(each)}" for each in ways]
        rows[f"right, and half right, of the answers `{verdict}`"] = right
    lines = [f"| {name} | {' | '.join(map(str, cells))} |" for name, cells in rows.items()]
    return "\n".join([lines[0], f"|---|{'---:|' * len(names)}", *lines[1:]])


def summary(outcomes: Sequence[Outcome]) -> str:
    """The figures beside the table, in sentences."""
    right = sum(each.wrong is None for each in outcomes)
    low, high = interval(right, len(outcomes))
    public = [each for each in outcomes if each.scenario.after]
    controls = [each for each in outcomes if each.scenario.is_control]
    blamed = sum(bool(each.diagnosis.causes) for each in controls)
    held = held_out(outcomes)
    first = sum(each.first_try == "right" for each in held)
    named = [each for each in outcomes if each.diagnosis.causes and each.wrong is None]
    likely = sum(each.diagnosis.verdict == LIKELY for each in named)
    return (
        f"{first} of {len(held)} incidents were right at the first try ({first / len(held):.0%}): nobody had written a "
        f"sign for them. After each round the signs were changed, so that all of them can be replayed:\n\n"
        f"{rounds(outcomes)}\n\nReplayed, {right} of {len(outcomes)} are right (95 % interval {low:.1%} to "
        f"{high:.1%}), {likely} of {len(named)} with a cause as `likely`. The replay shows only that nothing "
        f"got worse. {len(public)} were made after public threads, {len(controls)} are healthy controls, of which "
        f"{blamed} were blamed. {len(open_incidents())} more count for the first tries alone (`{OPEN.name}`): those "
        "that are still wrong, and some that say what others say."
    )
