"""The steps of an investigation: what every incident is asked, then what the runbooks of its alerts ask. And what an
answer means: `ok`, `abnormal`, `no_data` (neither healthy nor not) or `error` (ours, not the job's)."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import deadlines, runbooks
from jaxobs.ops.agent.report import ABNORMAL, ERROR, NO_DATA, OK, Outcome, Series, Step
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.gathering import prometheus_api
from jaxobs.ops.diagnosis.gathering.prometheus_api import Answer, Window
from jaxobs.ops.monitoring.promql import quoted

MOST_ANSWER = 20
"""Series of an answer in a report."""
MOST_STEPS = 40
LANES = 6
"""Queries that a Prometheus is asked at a time."""
_FILTER = re.compile(r"(?:[<>]=?|==|!=)\s*-?[\d.]+(?:e[+-]?\d+)?\)*\s*$")
"""An expression that gives only what is beyond a bound."""

Judge = Callable[["Question", Answer, Window, float], tuple[Outcome, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A step before it is asked."""

    id: str
    do: str
    query: str
    judge: Judge
    runbook: str = ""


def questions(subject: Subject, alerts: Sequence[str]) -> list[Question]:
    """Returns all questions about a subject: what every incident is asked, then the steps of the alerts' runbooks."""
    chosen = ", ".join(f"{name}={quoted(value)}" for name, value in sorted(subject.scope.items()))
    of = f"{{{chosen}}}"
    every = [
        ("alerts", "See which alerts fire for it, and since when.",
         f'ALERTS{{{_and(chosen, "alertstate=" + quoted("firing"))}}}', _present("alerts fire or fired")),
        ("processes", "See whether its processes answer Prometheus.", f"up{of}", _all_up),
        ("starts", "See which of its processes have started lately.",
         f"jax_process_start_timestamp_seconds{of}", _started),
        ("versions", "See which versions its processes run.", f"jax_build_info{of}", _one_version),
        ("cache", "See how often the persistent cache had what was asked for.",
         f"sum by (result) (increase(jax_persistent_cache_requests_total{of}[1h]))", _cache),
        ("peers-steps", "Compare the time of a step between its processes.",
         f"sum by (instance) (rate(jax_step_seconds_sum{of}[5m])) / "
         f"(sum by (instance) (rate(jax_step_seconds_count{of}[5m])) > 0)", _peers),
        ("peers-input", "Compare the time that they wait for input.",
         f"sum by (instance) (rate(jax_input_wait_seconds_total{of}[5m]))", _peers),
        ("peers-compiling", "Compare how much they compile.",
         f"sum by (instance) (increase(jax_compilations_total{of}[10m]))", _peers),
        ("peers-memory", "Compare the memory of their devices.",
         f"max by (instance) (jax_device_memory_in_use_bytes{of})", _peers),
    ]  # fmt: skip
    if not subject.is_known:
        every = []  # Of all jobs together it would say nothing, and cost much.
    found = [Question(id=name, do=do, query=query, judge=judge) for name, do, query, judge in every]
    asked = {each.query for each in found}
    for name in dict.fromkeys(alerts):
        declared = runbooks.declared().get(name)
        if declared is None:
            continue
        # Series of kube-state-metrics are about all of a cluster's nodes.
        own = [("The condition of the alert itself.", declared.expr)] if "kube_" not in declared.expr else []
        own += [(each.do, each.query) for each in declared.runbook.diagnosis if each.query]
        for number, (do, expr) in enumerate(own):
            query = runbooks.filled(expr, declared, subject.scope)
            if query in asked:
                continue  # An equal question is never asked twice in one investigation.
            asked.add(query)
            judge = _beyond if number == 0 or _FILTER.search(query) else _compared
            found.append(Question(id=f"{name}-{number}", do=do, query=query, judge=judge, runbook=name))
    return found[:MOST_STEPS]


def _and(*matchers: str) -> str:
    return ", ".join(each for each in matchers if each)


def ask(prometheus: str, asked: Sequence[Question], window: Window, since: float, *,
        timeout: float, budget: float) -> list[tuple[Step, Answer]]:  # fmt: skip
    """Asks the questions; returns the steps with the answers, in the order of the questions.

    Args:
      since: when the incident began; what is abnormal only before it is not.
      timeout: seconds for one answer.
      budget: seconds for all; what is left then is an `error`.
    """
    until = time.monotonic() + budget
    found: dict[str, tuple[Step, Answer]] = {}

    def lane(mine: Sequence[Question]) -> None:
        for question in mine:
            left = until - time.monotonic()
            late = Answer(problem=f"the budget of {budget:g} s was used up before it was asked")
            answer = (
                late if left <= 0 else prometheus_api.range_of(prometheus, question.query, window, min(timeout, left))
            )
            found[question.id] = (_step(question, answer, window, since), answer)

    deadlines.at_once([lambda n=n: lane(asked[n::LANES]) for n in range(LANES)], budget + 0.5)  # type: ignore[misc]
    missing = Answer(problem=f"no answer within {budget:g} s")
    done = dict(found)
    return [done.get(each.id) or (_step(each, missing, window, since), missing) for each in asked]


def _step(asked: Question, answer: Answer, window: Window, since: float) -> Step:
    outcome: Outcome
    if answer.problem is not None:
        outcome, because = ERROR, f"It could not be asked: {answer.problem}."
    elif not answer.lines and asked.judge is not _beyond:
        outcome, because = _nothing()
    else:
        outcome, because = asked.judge(asked, answer, window, since)
    if answer.left_out:
        because += f" {answer.left_out} more series were not read."
    return Step(
        id=asked.id, do=asked.do, source="prometheus", query=asked.query, window_seconds=window.seconds,
        outcome=outcome, because=because, series=len(answer.lines) + answer.left_out,
        answer=[_series(each) for each in answer.lines[:MOST_ANSWER]], sha256=answer.sha256,
        seconds=round(answer.seconds, 3), runbook=asked.runbook,
    )  # fmt: skip


def _nothing() -> tuple[Outcome, str]:
    return NO_DATA, "Prometheus has no such series: this says nothing, neither good nor bad."


def _series(line: prometheus_api.Line) -> Series:
    labels = {name: value for name, value in line.labels.items() if name != "__name__"}
    return Series(labels=labels, first=line.points[0][1], last=line.points[-1][1], points=len(line.points))


# -------------------------------------------------------------------------------------------- what an answer means


def _present(what: str) -> Judge:
    def judge(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
        names = sorted({each.labels.get("alertname", "") for each in _lately(answer, window, since)})
        return (ABNORMAL, f"{len(names)} {what}: {', '.join(names[:10])}.") if names else (OK, "None fires.")

    return judge


def _lately(answer: Answer, window: Window, since: float) -> list[prometheus_api.Line]:
    """Returns the series with a sample since the incident began, or in the last moments of the window."""
    begun = min(since, window.end - 2 * window.apart)
    return [each for each in answer.lines if each.points[-1][0] >= begun]


def _beyond(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
    """Judges an expression that gives only what is beyond a bound."""
    shown = _lately(answer, window, since)
    if shown:
        names = sorted({each.process for each in shown if each.process})
        said = f": {', '.join(names[:5])}" if names else ""
        return ABNORMAL, f"{len(shown)} series are beyond the bound{said}."
    if answer.lines:
        return OK, "It was beyond the bound earlier in the window, not since the incident began."
    return NO_DATA, "Nothing is beyond the bound, or there is no such series: this says nothing by itself."


def _compared(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
    """Compares processes with their peers, then each series with itself before the incident."""
    by_process: dict[str, list[tuple[float, float]]] = {}
    for line in answer.lines:
        if "instance" in line.labels:
            by_process.setdefault(line.process, list(line.points))
    single = len(by_process) == len(answer.lines)
    if single and (found := outliers(by_process)):
        return ABNORMAL, _differ(found)
    for line in answer.lines:
        moved = changed(line.points, since)
        if moved:
            return ABNORMAL, f"{line.process or 'It'} went from {moved[0]:.4g} to {moved[1]:.4g} as the incident began."
    return OK, "No process differs from its peers, and nothing changed as the incident began."


def _peers(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
    by_process = {each.process: each.points for each in answer.lines}
    if len(by_process) < FEWEST:
        return NO_DATA, f"Too few to compare: {len(by_process)} of the {FEWEST} processes that it takes."
    found = outliers(by_process)
    return (ABNORMAL, _differ(found)) if found else (OK, f"None of {len(by_process)} differs from the others.")


def _differ(found: Sequence[Outlier]) -> str:
    told = [
        f"{each.name} has {each.value:.4g}, the median {each.median:.4g} ({each.votes} of {each.windows} windows)"
        for each in found[:5]
    ]
    return f"{len(found)} differ from their peers: {'; '.join(told)}."


def _all_up(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
    now = [each for each in answer.lines if each.points[-1][0] >= window.end - 2 * window.apart]
    down = sorted(each.process for each in now if each.points[-1][1] == 0)
    gone = len(answer.lines) - len(now)
    if down:
        return ABNORMAL, f"{len(down)} of {len(now)} do not answer: {', '.join(down[:5])}."
    if not now:
        return ABNORMAL, f"Prometheus scrapes none of them any more; {gone} were there before."
    return OK, f"All {len(now)} answer" + (f"; {gone} are not scraped any more." if gone else ".")


def _started(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
    young = sorted((value, each.process) for each in answer.lines for value in {value for _, value in each.points}
                   if value >= window.start)  # fmt: skip
    if not young:
        return OK, "None within the window."
    told = [f"{name} at {timestamp(at)}" for at, name in young[-5:]]
    again = len(young) - len({name for _, name in young})
    return (ABNORMAL if again else OK), f"{len(young)} starts within the window: {', '.join(told)}."


def _one_version(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
    pins = {tuple((name, each.labels.get(name, "")) for name in VERSIONS) for each in answer.lines}
    if len(pins) > 1:
        return ABNORMAL, f"{len(pins)} different sets of versions within the window."
    return OK, "One set of versions within the window."


VERSIONS = ("jax", "jaxlib", "plugin", "driver", "runtime", "jaxobs")
"""Labels of `jax_build_info` that say what a process runs."""


def _cache(asked: Question, answer: Answer, window: Window, since: float) -> tuple[Outcome, str]:
    hits, requests = cache_hits(answer)
    if hits is None:
        return NO_DATA, "The persistent cache was not asked for anything."
    return OK, f"{hits:.0%} of {requests:.0f} requests were hits."


def cache_hits(answer: Answer) -> tuple[float | None, float]:
    """Returns the share of hits among the requests to the persistent cache, and their number; None without requests."""
    latest = {each.labels.get("result", ""): each.points[-1][1] for each in answer.lines}
    asked = latest.get("hit", 0.0) + latest.get("miss", 0.0)
    return (latest.get("hit", 0.0) / asked if asked >= 1 else None), asked


# ------------------------------------------------------------------------------ which processes differ from their peers

FEWEST = 3
"""Processes among which one can differ, and windows in which it has to."""
WINDOWS = 5
"""Latest windows, which vote."""
_SCALE = 1.4826
"""Makes the MAD of normal values their standard deviation."""
_DEVIATIONS = 3.5
_LEAST_SHARE = 0.1
"""Least share of the median: processes of one job differ by a few per cent without anything being wrong."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """Process that differs from the others of its job."""

    name: str
    value: float
    """Value in the latest window in which it voted."""
    median: float
    """Median of all processes in that window."""
    votes: int
    windows: int


def outliers(series: Mapping[str, Sequence[tuple[float, float]]]) -> list[Outlier]:
    """Returns the processes that differ from the others in most of the latest windows.

    Args:
      series: samples of each process: time and value, at common times.
    """
    by_time: dict[float, dict[str, float]] = {}
    for name, points in series.items():
        for at, value in points:
            by_time.setdefault(at, {})[name] = value
    windows = [(at, each) for at, each in sorted(by_time.items()) if len(each) >= FEWEST][-WINDOWS:]
    if len(windows) < FEWEST:
        return []
    votes: dict[str, list[tuple[float, float]]] = {}
    for _, values in windows:
        middle = statistics.median(values.values())
        spread = _SCALE * statistics.median(abs(each - middle) for each in values.values())
        bound = max(_DEVIATIONS * spread, _LEAST_SHARE * abs(middle))
        for name, value in values.items():
            if abs(value - middle) > bound:
                votes.setdefault(name, []).append((value, middle))
    needed = max(FEWEST, (len(windows) * 3 + 4) // 5)
    return [
        Outlier(name, *given[-1], votes=len(given), windows=len(windows))
        for name, given in sorted(votes.items())
        if len(given) >= needed
    ]


def changed(points: Sequence[tuple[float, float]], since: float) -> tuple[float, float] | None:
    """Returns the medians before and after a moment, if they differ by more than the ordinary variation."""
    before = [value for at, value in points if at < since]
    after = [value for at, value in points if at >= since]
    if len(before) < FEWEST or len(after) < FEWEST:
        return None
    typical, now = statistics.median(before), statistics.median(after)
    spread = _SCALE * statistics.median(abs(each - typical) for each in before)
    return (typical, now) if abs(now - typical) > max(_DEVIATIONS * spread, 0.25 * abs(typical), 1e-12) else None
