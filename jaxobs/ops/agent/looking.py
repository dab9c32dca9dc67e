"""All evidence about one subject: from Prometheus, and from the processes that it scrapes or that were given.

No address ever comes from a label, an annotation or a generatorURL: only processes that the operator named, or that
Prometheus itself scrapes, are asked.
"""

import collections
import dataclasses
import functools
import itertools
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from jaxobs.base.errors import JaxobsError
from jaxobs.ops.agent import deadlines, pods
from jaxobs.ops.agent.pods import PodSource, Told
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis import Inputs, gather
from jaxobs.ops.diagnosis.evidence import ALERT, EVENT, METRIC, Evidence, Observation, Source
from jaxobs.ops.diagnosis.gathering import prometheus_api
from jaxobs.ops.diagnosis.gathering.http import NoAnswerError, shown
from jaxobs.ops.diagnosis.gathering.prometheus_api import Target, Window
from jaxobs.ops.monitoring.promql import GROUPING, quoted
from jaxobs.views import client

DAYS = 3
"""Days for which an ended job is still one that was seen."""
_MARGIN = 0.5
"""Seconds before the end in which what is late can still be named."""
MOST_PROCESSES = 8
"""Processes that are asked themselves: those that the alerts name first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Time limits of an investigation."""

    answer: float = 2.0
    """Seconds for an answer of a process or of Prometheus."""
    all: float = 5.0
    """Seconds for all answers together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Evidence, and what of it was not looked at."""

    evidence: Evidence
    asked: tuple[str, ...]
    """Addresses of processes."""
    not_looked_at: tuple[str, ...]
    looked_at: tuple[str, ...] = ()
    """Sources that answered."""
    changes: tuple[tuple[float, str], ...] = ()
    """Times, and what changed in the job's surroundings then."""
    is_whole: bool = True
    """Whether all sources answered."""


def chosen(
    given: Sequence[str], scraped: Sequence[Target], subject: Subject, instances: Iterable[str]
) -> tuple[dict[str, Target | None], list[str]]:
    """Returns the processes to ask, by address, and what is left out.

    Args:
      given: addresses that the operator named; one that Prometheus scrapes for another job is left out.
      scraped: what Prometheus scrapes.
      instances: those that the alerts name: they come first.
    """
    named = set(instances)
    by_url: dict[str, Target] = {}
    for target in scraped:
        try:
            by_url.setdefault(client.endpoint_url(target.url), target)
        except JaxobsError:
            continue
    own = {
        url: each for url, each in by_url.items() if subject.is_known and subject.scope.items() <= each.labels.items()
    }
    in_order = sorted(own, key=lambda url: (own[url].labels.get("instance") not in named, url))
    wanted: dict[str, Target | None] = {url: own[url] for url in in_order}
    for address in given:
        url = client.endpoint_url(address)
        if url not in by_url:
            wanted.setdefault(url, None)
    down = [url for url, each in wanted.items() if each is not None and not each.is_up]
    left = [f"{url}: Prometheus cannot scrape it either" for url in down]
    kept = {url: each for url, each in wanted.items() if url not in down}
    if len(kept) > MOST_PROCESSES:
        left.append(f"{len(kept) - MOST_PROCESSES} more processes: {MOST_PROCESSES} are asked themselves")
    return dict(itertools.islice(kept.items(), MOST_PROCESSES)), left


def look(prometheus: str, given: Sequence[str], subject: Subject, instances: Iterable[str], window: Window,
         bounds: Bounds, sources_of_pods: Sequence[PodSource] = (), since: float = 0.0) -> Seen:  # fmt: skip
    """Returns everything that Prometheus, the processes of a subject and what knows its pods show within a window.

    Args:
      since: when the incident began.
    """
    notes: list[str] = []
    is_whole = True
    try:
        scraped = prometheus_api.targets(prometheus, bounds.answer)
    except NoAnswerError as error:
        scraped, is_whole = [], False
        notes.append(f"The processes that Prometheus scrapes: {error}.")
    instances = frozenset(instances)
    processes, left = chosen(given, scraped, subject, instances)
    notes += left
    for url in _of_other_jobs(processes, instances, bounds):
        del processes[url]
        notes.append(f"{url}: it is a job of one process, and the alerts are about another one.")

    def of_prometheus() -> Evidence:
        return gather(
            Inputs(prometheus=(prometheus,)), now=window.end, window=window.seconds, timeout=bounds.answer,
            budget=bounds.all, scope=subject.scope,
        )  # fmt: skip

    def of_process(url: str) -> Callable[[], Evidence]:
        return lambda: gather(Inputs(targets=(url,)), timeout=bounds.answer)

    def of_pods() -> tuple[list[pods.Pod], dict[str, Told], dict[str, str]]:
        until = time.monotonic() + bounds.all
        own = pods.of_job(prometheus, subject, instances, window, bounds.answer / 2)
        left = until - time.monotonic() - _MARGIN
        asked = {
            each.source: functools.partial(each.look, subject, own, window, since, left) for each in sources_of_pods
        }
        return own, *deadlines.by_name(asked, left)

    work: list[Callable[[], Any]] = [of_prometheus, of_pods if sources_of_pods else lambda: ([], {}, {})]
    first, around, *others = deadlines.at_once([*work, *map(of_process, processes)], bounds.all)
    late = f"no answer within {bounds.all:g} s"
    whole = first or Evidence((), (Source(kind="prometheus", name=shown(prometheus), problem=late),))
    has_prometheus = all(each.problem is None for each in whole.sources)
    observations, sources = list(whole.observations), list(whole.sources)
    own_pods, found_of_pods, failed = around or ([], {}, {each.source: late for each in sources_of_pods})
    told = list(found_of_pods.values())
    notes += [f"{_NAMES[name]}: {problem}." for name, problem in failed.items()]
    notes += [note for each in told for note in each.notes or _nothing(each)]
    configured = {each.source for each in sources_of_pods}
    absent = [f"{_NAMES[name]}: not configured; {do}." for name, do in _SWITCHES.items() if name not in configured]
    if not processes and not left:
        absent.append("Processes: Prometheus scrapes none of the job, and no `--target` names one.")
    states = sum(each.name.startswith("kube_") for each in whole.observations)
    if not states:
        absent.append(f"kube-state-metrics: {_NO_STATES if has_prometheus else 'Prometheus does not answer'}.")
    of_their_logs = pods.read(told, own_pods, window.end)
    observations += of_their_logs.observations
    sources += of_their_logs.sources
    notes += [f"Prometheus: {note}." for each in whole.sources for note in each.notes]
    own: dict[str, set[str]] = {}
    read: list[tuple[Target | None, Evidence]] = []
    for (url, target), found in zip(processes.items(), others, strict=True):
        if found is None:
            found = Evidence((), (Source(kind="target", name=url, problem=late),))
        problems = [each.problem for each in found.sources if each.problem]
        is_whole = is_whole and not problems
        if problems and target is not None and has_prometheus:
            # Prometheus has its metrics: that it does not show more is a gap, and no reason to doubt these.
            notes.append(f"{url}: {problems[0]}")
            continue
        sources += found.sources
        read.append((target, found))
        if target is not None and target.labels.get("instance"):
            own.setdefault(_own_name(found), set()).add(target.labels["instance"])
    for target, found in read:
        observations += _of_process(found, target, own, window, has_prometheus)
    looked_at = [f"{each.kind} {each.name}" for each in sources if each.problem is None and each.kind != "log"]
    if states:
        looked_at.append(f"kube-state-metrics: {states} series about the job's pods and nodes")
    return Seen(
        evidence=Evidence.of(observations, sources), asked=tuple(processes), not_looked_at=(*absent, *notes),
        looked_at=(*looked_at, *(each.looked_at for each in told if each.looked_at)),
        changes=tuple(change for each in told for change in each.changes),
        is_whole=is_whole and has_prometheus and not failed,
    )  # fmt: skip


_NAMES = {"kubernetes": "Kubernetes", "loki": "Loki"}
_SWITCHES = {
    "kubernetes": "start the agent with `--kubernetes`",
    "loki": "start the agent with `--loki URL`, or give logs to `jaxobs diagnose --log FILE`",
}
"""How a report says to have each source of pods asked."""
_NO_STATES = "Prometheus has no series of it about the job's pods and nodes"


def _nothing(told: Told) -> list[str]:
    """Returns a note on a source that answered and has nothing about the job."""
    return [] if told.looked_at else [f"{_NAMES[told.source]}: it has nothing about the job."]


def _of_other_jobs(
    processes: Mapping[str, Target | None], instances: Set[str], bounds: Bounds
) -> list[str]:  # fmt: skip
    """Returns the addresses of given processes that run alone, if the alerts name another one."""
    named = {url for url, each in processes.items() if _instance(url, each) in instances}
    strange = [url for url, each in processes.items() if each is None and url not in named] if named else []
    sizes = deadlines.at_once([functools.partial(_size_of_job, url, bounds.answer) for url in strange], bounds.answer)
    return [url for url, size in zip(strange, sizes, strict=True) if size == 1]


def _instance(url: str, target: Target | None) -> str:
    """Returns the name that alerts have for a process."""
    return urllib.parse.urlsplit(url).netloc if target is None else target.labels.get("instance", "")


def _size_of_job(url: str, timeout: float) -> int | None:
    """Returns the number of processes of its job; None if it does not say."""
    try:
        return client.fetch_snapshot(url, timeout=timeout).process.process_count
    except JaxobsError:
        return None


def _own_name(found: Evidence) -> str:
    """Returns the name that a process has for itself, `process 3`. Its findings may be about others."""
    about_itself = [each for each in found.observations if each.kind != METRIC and not each.name.startswith("finding:")]
    names = [each.process for each in about_itself or found.observations if each.process]
    return collections.Counter(names).most_common(1)[0][0] if names else ""


def _of_process(
    found: Evidence, target: Target | None, own: Mapping[str, Set[str]], window: Window, has_prometheus: bool
) -> Iterable[Observation]:
    """Yields what a process says of the window, under the names that Prometheus has for processes.

    Its counters count since it started: where there is a history of them, they say nothing.
    """
    instance = target.labels.get("instance", "") if target is not None else ""
    itself = _own_name(found)
    for observation in found.observations:
        if observation.kind == METRIC and has_prometheus:
            continue
        if (
            observation.kind == EVENT
            and observation.time is not None
            and not window.start <= observation.time <= window.end + 60
        ):
            continue
        others = own.get(observation.process, set())
        name = (
            instance if observation.process == itself and instance else next(iter(others)) if len(others) == 1 else ""
        )
        yield dataclasses.replace(observation, process=name) if name else observation


def only_since(evidence: Evidence, moment: float) -> Evidence:
    """Returns what was seen after a moment, with what has no time, and alerts: they fire now, whenever they began."""
    old = [
        each for each in evidence.observations if each.kind != ALERT and each.time is not None and each.time < moment
    ]
    return evidence.without(old)


def in_series(prometheus: str, subject: Subject, window: Window, timeout: float) -> Subject:
    """Returns a subject without the labels that none of its series has; the same one if Prometheus does not say.

    A label that some series have stays, with another value too: then they are about something else.
    """
    own = _process_of(subject)
    places = sorted(name for name in subject.scope if name in GROUPING and name not in own)
    if not own or not places:
        return subject
    query = f'count by ({", ".join(places)}) ({{__name__=~"up|jax_process_start_timestamp_seconds", {_matchers(own)}}})'
    found = prometheus_api.range_of(prometheus, query, window, timeout).lines
    strange = {name for name in places if found and not any(each.labels.get(name) for each in found)}
    return Subject(tuple((name, value) for name, value in subject.labels if name not in strange))


def was_seen(prometheus: str, subject: Subject, until: float, timeout: float) -> bool:
    """Returns whether Prometheus had metrics of jaxobs from a subject within the last days."""
    query = f"last_over_time(jax_process_start_timestamp_seconds{{{_matchers(_process_of(subject))}}}[{DAYS}d])"
    return bool(prometheus_api.range_of(prometheus, query, Window(end=until, seconds=1.0, step=1.0), timeout).lines)


def _process_of(subject: Subject) -> dict[str, str]:
    return {name: value for name, value in subject.scope.items() if name in ("job", "instance")}


def _matchers(own: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={quoted(value)}" for name, value in sorted(own.items()))
