"""The pods of a job, and what sources say of them that know pods: Kubernetes, and a Loki."""

import os
import re
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis import Inputs, gather
from jaxobs.ops.diagnosis.evidence import LINE, Evidence
from jaxobs.ops.diagnosis.gathering import prometheus_api
from jaxobs.ops.diagnosis.gathering.places import LOG, File
from jaxobs.ops.diagnosis.gathering.prometheus import selector
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window

MOST_PODS = 16
"""Pods that are looked at: those that the alerts name first, then those that started last."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Pod:
    """Pod of a job, as the labels of its series name it."""

    namespace: str
    name: str
    instance: str = ""
    """Name of its process in Prometheus; empty if it is not known, or the pod has several."""
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Answer of one source."""

    source: str
    """Word for the source: `kubernetes` or `loki`."""
    looked_at: str = ""
    """Names what was looked at, for the report; empty if nothing could be."""
    logs: Mapping[str, str] = field(default_factory=dict)
    """Texts by the names of pods; under an empty name what is about the job."""
    is_of_job: bool = True
    """Whether the texts are the job's own logs; else they are what others say of it, and no course of it."""
    changes: tuple[tuple[float, str], ...] = ()
    """Times, and what changed then."""
    notes: tuple[str, ...] = ()
    """Sentences on what was not looked at, and why."""


class PodSource(Protocol):
    """Source that is asked about the pods of a job."""

    source: str

    def look(self, subject: Subject, pods: Sequence[Pod], window: Window, since: float, seconds: float) -> Told:
        """Asks, for at most so many seconds. Does not raise an error for what answers.

        Args:
          since: when the incident began.
        """


def of_job(
    prometheus: str, subject: Subject, instances: Iterable[str], window: Window, timeout: float
) -> list[Pod]:  # fmt: skip
    """Returns the pods that the series of a job name within a window, those of some instances first."""
    if not subject.is_known:
        return []
    query = f"jax_process_start_timestamp_seconds{selector(subject.scope)}"
    named = set(instances)
    found: dict[tuple[str, str], list[tuple[bool, float, Pod]]] = {}
    for line in prometheus_api.range_of(prometheus, query, window, timeout).lines:
        label = line.labels.get
        pod = Pod(label("namespace", ""), label("pod", ""), label("instance", ""), label("node", ""))
        if _NAME.fullmatch(pod.name) and _NAME.fullmatch(pod.namespace):
            found.setdefault((pod.namespace, pod.name), []).append((pod.instance in named, line.points[-1][1], pod))
    ordered = sorted(found.values(), key=lambda each: max(each)[:2], reverse=True)[:MOST_PODS]
    return [each[0][2] if len(each) == 1 else replace(each[0][2], instance="") for each in ordered]


def read(told: Iterable[Told], pods: Iterable[Pod], now: float) -> Evidence:
    """Returns what the texts show, under the names that Prometheus has for the processes."""
    called = {each.name: each.instance or each.name for each in pods}
    files: list[File] = []
    whose: dict[str, tuple[str, bool]] = {}
    with tempfile.TemporaryDirectory(prefix="jaxobs-agent-") as folder:
        for one in told:
            for pod, text in one.logs.items():
                path, name = os.path.join(folder, str(len(files))), f"{one.source} {pod or 'job'}"
                with open(path, "w", encoding="utf-8", errors="replace") as file:
                    file.write(text)
                files.append(File(kind=LOG, path=path, name=name, year=time.gmtime(now).tm_year, modified=now))
                whose[name] = called.get(pod, pod), one.is_of_job
        found = gather(Inputs(), now=now, read_files=files)
    kept = [
        replace(each, process=whose[each.source][0]) if whose[each.source][0] else each
        for each in found.observations
        if each.kind == LINE or whose[each.source][1]
    ]
    return Evidence.of(kept, found.sources)
