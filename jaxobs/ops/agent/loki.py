"""A Loki on the pods of a job: their logs around the incident, by its HTTP API. The reader of logs judges them.

`JAXOBS_LOKI_TOKEN` and `JAXOBS_LOKI_HEADERS` are for a Loki what the variables with `PROMETHEUS` are for a Prometheus.
"""

import functools
import operator
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from jaxobs.base import json_lines
from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import deadlines
from jaxobs.ops.agent.pods import Pod, Told
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.gathering.bounded import TROUBLE
from jaxobs.ops.diagnosis.gathering.http import NoAnswerError, fetch, request, shown
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window, dicts, labels_of
from jaxobs.ops.monitoring.promql import quoted

MOST_LINES = 1000
"""Lines of one answer. There are three: the latest, those around the beginning, and the first that speak of trouble."""
BEFORE = 120.0
"""Seconds before the incident from which on the lines around its beginning are read: an alert waits before it fires."""
_NAMES = {
    "namespace": ("namespace", "k8s_namespace_name", "kubernetes_namespace_name"),
    "pod": ("pod", "k8s_pod_name", "pod_name", "kubernetes_pod_name"),
    "job": ("job", "service_name", "app", "app_kubernetes_io_name"),
}
"""Labels of streams that collectors give, the usual ones first."""
Lines = dict[tuple[int, str], str]
"""Pods, by the time in nanoseconds and the text of a line."""


class Loki:
    """Loki whose address the operator gave."""

    source = "loki"

    def __init__(self, url: str) -> None:
        """Raises a `SettingError` for a variable that cannot be used."""
        request(url, "LOKI")
        self._url = url.rstrip("/")

    def look(self, subject: Subject, pods: Sequence[Pod], window: Window, since: float, seconds: float) -> Told:
        """Asks which labels its streams have, and then for lines of those of the job's pods."""
        span = {"start": _nanoseconds(window.start), "end": _nanoseconds(window.end)}
        try:
            chosen = _selector(subject, pods, self._ask("labels", span, seconds / 3))
        except NoAnswerError as error:
            return Told(source=self.source, notes=(f"Loki: {shown(self._url)}: {error}.",))
        asked = {
            "latest": {"query": chosen, "direction": "backward"},
            "first": {"query": chosen, "start": _nanoseconds(max(window.start, since - BEFORE))},
            "trouble": {"query": f"{chosen} |~ {quoted('|'.join(each.decode() for each in TROUBLE))}"},
        }
        common = {**span, "limit": str(MOST_LINES), "direction": "forward"}
        found, problems = deadlines.by_name(
            {
                name: functools.partial(self._lines, {**common, **each}, seconds / 2)
                for name, each in asked.items()
            },
            seconds / 2,
        )  # fmt: skip
        every: Lines = functools.reduce(operator.or_, found.values(), {})
        texts: dict[str, list[str]] = {}
        for (moment, text), pod in sorted(every.items()):
            when = timestamp(moment / 1e9)
            texts.setdefault(pod, []).extend(f"{when} {line}\n" for line in text.splitlines())
        if len(found.get("latest", ())) >= MOST_LINES:
            problems["the rest"] = "it has more lines of these streams than were read"
        return Told(
            source=self.source, logs={pod: "".join(lines) for pod, lines in texts.items()},
            looked_at=f"Loki: {len(every)} lines of {len(texts)} pods; {chosen}" if found else "",
            notes=tuple(f"Loki: {name}: {each}." for name, each in problems.items()),
        )  # fmt: skip

    def _lines(self, parameters: Mapping[str, str], seconds: float) -> Lines:
        return _lines(self._ask("query_range", parameters, seconds))

    def _ask(self, path: str, parameters: Mapping[str, str], seconds: float) -> Any:
        """Returns the data of an answer.

        Raises:
          NoAnswerError: there is none in time, or it is not that of a Loki.
        """
        url = f"{self._url}/loki/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            body = json_lines.loads(fetch(url, seconds, whose="LOKI"))
        except ValueError:
            body = None
        if not isinstance(body, dict) or body.get("status") != "success":
            raise NoAnswerError("what answers is not a Loki")
        return body.get("data", [])


def _selector(subject: Subject, pods: Sequence[Pod], names: Any) -> str:
    """Returns which streams to ask for: those of the pods if these are known, else those of the job.

    Args:
      names: those of the labels, as Loki answers.

    Raises:
      NoAnswerError: no label says whose a stream is.
    """
    given = names if isinstance(names, list) else []
    label = {what: next((each for each in known if each in given), "") for what, known in _NAMES.items()}
    chosen = []
    if pods and label["pod"]:
        chosen.append(f"{label['pod']}=~{quoted('|'.join(re.escape(each.name) for each in pods))}")
    elif label["job"] and (job := subject.scope.get("job")):
        chosen.append(f"{label['job']}=~{quoted(f'(?:.+/)?{re.escape(job)}')}")
    else:
        raise NoAnswerError("none of its labels says of which pod or job a stream is")
    if label["namespace"] and (space := subject.scope.get("namespace") or (pods[0].namespace if pods else "")):
        chosen.append(f"{label['namespace']}={quoted(space)}")
    return f"{{{', '.join(chosen)}}}"


def _lines(data: Any) -> Lines:
    """Returns the lines of an answer."""
    found: Lines = {}
    for stream in dicts(data.get("result") if isinstance(data, dict) else None):
        labels = labels_of(stream.get("stream"))
        pod = next((labels[each] for each in (*_NAMES["pod"], "instance", "host") if labels.get(each)), "")
        values = stream.get("values")
        for entry in values if isinstance(values, list) else ():
            # Behind the time and the text some have structured metadata.
            if isinstance(entry, list) and len(entry) > 1 and isinstance(entry[1], str) and str(entry[0]).isdecimal():
                found[int(entry[0]), entry[1]] = pod
    return found


def _nanoseconds(moment: float) -> str:
    return str(int(moment * 1e9))
