"""Incidents of several jobs with one cause: the same fault at the same place.

A place is a volume or a path, a node, a host, a service, or a change of a version, as the report names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxobs.ops.agent.report import Report

_PATH = re.compile(r"(?<![\w./:-])/(?:[\w.@+=-]+/?)+|\b(?:gs|s3|az|hdfs)://[\w.-]+")
_SOURCE = re.compile(r"\.(?:py|pyc|so|cc|cpp|h)\b")
_ROOTS = {"/app", "/dev", "/etc", "/home", "/media", "/mnt", "/private", "/root", "/run", "/srv", "/tmp", "/var"}
"""Folders that say too little to be a place."""
_ELSEWHERE = ("/usr/", "/opt/", "/lib", "/proc/", "/sys/", "/api/")
_DEEPEST = 4
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class CommonCause:
    """Fault, and its places in one report."""

    fault: str
    places: frozenset[str]

    @classmethod
    def of(cls, report: Report) -> CommonCause:
        """Returns the cause of a report; without places if none is named: then it is like no other."""
        if report.verdict not in ("cause", "likely") or not report.causes:
            return cls("", frozenset())
        return cls(report.causes[0].id, frozenset(_places(report)))

    def is_that_of(self, other: CommonCause) -> bool:
        """Returns whether both are the same fault at one place."""
        return self.fault == other.fault and bool(self.places & other.places)


def _places(report: Report) -> Iterator[str]:
    cause = report.causes[0]
    yield _PORT.sub("", cause.component)
    yield from (alert.labels["node"] for alert in report.alerts if alert.labels.get("node"))
    yield from (change.partition(": ")[2] or change for change in report.context.version_changes)
    for item in report.evidence:
        if item.id in cause.evidence:
            for found in _PATH.findall(item.text):
                yield from _volumes(found.rstrip("/."))


def _volumes(path: str) -> Iterator[str]:
    """Yields a path and the folders above it, but for those that every machine has."""
    if "://" in path:
        yield path
    elif not path.startswith(_ELSEWHERE) and not _SOURCE.search(path):
        parts = path.split("/")
        found = ("/".join(parts[:number]) for number in range(2, min(len(parts), _DEEPEST) + 1))
        yield from (each for each in found if each not in _ROOTS)
