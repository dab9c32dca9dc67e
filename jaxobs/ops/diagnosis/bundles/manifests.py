"""What a bundle says of itself: `manifest.json`."""

import importlib.metadata
import json
import math
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base import json_lines
from jaxobs.base.version import __version__
from jaxobs.facts.events import plain, timestamp
from jaxobs.ops.diagnosis.bundles.archives import BundleError, Entry
from jaxobs.ops.diagnosis.gathering.places import EVENT_LOG, LOG, METRICS_FILE
from jaxobs.views import client

MANIFEST, DIAGNOSIS = "manifest.json", "diagnosis.json"
FORMAT = "jaxobs-incident-bundle"
SCHEMA_VERSION = 1

_MOST_SIZE = 2**46
_MOST_NAME = 4096
_EVIDENCE = re.compile(r"evidence/\d{4}")
_PACKAGES = ("jax", "jaxlib", "prometheus-client")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """When the bundle was made: the present of whoever replays it."""

    now: float
    """Seconds since the epoch."""
    window: float
    """Seconds of history that a Prometheus was asked for."""
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """One file of the evidence."""

    kind: str
    name: str
    year: int
    size: int = 0
    """Bytes of the original."""
    head: str | None = None
    """The entry with all of it, or with its beginning if there is a tail."""
    tail: str | None = None
    """The entry with its end, if its middle was left out."""
    modified: float | None = None
    """When the original was written last, in seconds since the epoch."""
    problem: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server answered to one question, or why it did not."""

    address: str
    entry: str | None = None
    problem: str | None = None
    is_late: bool = False
    """Whether it was not asked any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything in a bundle, by its hash."""

    clock: Clock
    versions: Mapping[str, str]
    files: tuple[CopiedFile, ...]
    answers: tuple[Answer, ...]
    targets: tuple[str, ...]
    prometheus: tuple[str, ...]
    masked: int
    """Texts that looked like secrets, and were overwritten with `*`."""
    entries: dict[str, Entry] = field(default_factory=dict)

    def as_bytes(self) -> bytes:
        """The JSON text."""
        head = {"format": FORMAT, "schema_version": SCHEMA_VERSION, "time": timestamp(self.clock.now)}
        return (json.dumps(head | plain(self), indent=2, allow_nan=False) + "\n").encode()


def versions() -> dict[str, str]:
    """Of what made the bundle. No name of a host or a user is among them."""
    found = {"jaxobs": __version__, "python": platform.python_version(), "system": platform.system()}
    found["machine"] = platform.machine()
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def read(text: bytes, path: str) -> Manifest:
    """The manifest of the bundle at `path`.

    Raises:
      BundleError: it is none of ours, of a later version, or says what cannot be.
    """
    try:
        body = json_lines.loads(text)
    except ValueError as error:
        raise BundleError(f"`{path}`: the entry `{MANIFEST}` is not valid JSON: {error}.") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise BundleError(f"`{path}` is not a bundle of jaxobs: `{MANIFEST}` has another format.")
    schema = body.get("schema_version")
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        made_by = body.get("versions")
        by = made_by.get("jaxobs", "a later version") if isinstance(made_by, dict) else "a later version"
        raise BundleError(
            f"`{path}` has schema version {schema}; this jaxobs ({__version__}) reads {SCHEMA_VERSION}. It was made by "
            f"jaxobs {str(by)[:40]!r}: install that version or a later one."
        )
    try:
        if schema != SCHEMA_VERSION:
            raise ValueError("`schema_version` is missing")
        found = _decoded(body)
        _check(found)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BundleError(f"`{path}`: the entry `{MANIFEST}` is damaged: {error}.") from None
    return found


def _decoded(body: Mapping[str, Any]) -> Manifest:
    entries = body.get("entries")
    if not isinstance(entries, dict):
        raise ValueError("`entries` is missing")
    known = {name: client.decode(Entry, each, f"entries.{name}") for name, each in entries.items()}
    bare = {**body, "entries": {}}
    parts = {
        name: client.decode(kind, bare.get(name), name)
        for name, kind in (
            ("clock", Clock), ("versions", Mapping[str, str]), ("files", tuple[CopiedFile, ...]),
            ("answers", tuple[Answer, ...]), ("targets", tuple[str, ...]), ("prometheus", tuple[str, ...]),
            ("masked", int),
        )
    }  # fmt: skip
    return Manifest(**parts, entries=known)


def _check(found: Manifest) -> None:
    """What the types do not say."""
    clock = found.clock
    if not all(math.isfinite(each) and each >= 0 for each in (clock.now, clock.window, clock.timeout)):
        raise ValueError("`clock` is out of range")
    for each in found.files:
        if each.kind not in (EVENT_LOG, METRICS_FILE, LOG):
            raise ValueError(f"a file has the kind {each.kind!r:.40}")
        if len(each.name) > _MOST_NAME or not 0 <= each.year <= 9999 or not 0 <= each.size <= _MOST_SIZE:
            raise ValueError(f"the file {each.name!r:.60} is out of range")
        if each.modified is not None and not (math.isfinite(each.modified) and each.modified >= 0):
            raise ValueError(f"the file {each.name!r:.60} has a time that cannot be")
        if (each.head is None) == (each.problem is None) or (each.tail is not None and each.head is None):
            raise ValueError(f"the file {each.name!r:.60} has both or neither of a text and a problem")
        if each.tail is not None and each.kind == EVENT_LOG:
            raise ValueError(f"the event log {each.name!r:.60} has no middle")
        sizes = [found.entries[_evidence(name, found)].size for name in (each.head, each.tail) if name is not None]
        if sum(sizes) > each.size or (len(sizes) == 1 and sizes[0] != each.size):
            raise ValueError(f"the file {each.name!r:.60} has another size")
    for answer in found.answers:
        if (answer.entry is None) == (answer.problem is None):
            raise ValueError(f"the answer of {answer.address!r:.60} has both or neither of a text and a problem")
        if answer.entry is not None:
            _evidence(answer.entry, found)


def _evidence(name: str, found: Manifest) -> str:
    if not _EVIDENCE.fullmatch(name) or name not in found.entries:
        raise ValueError(f"{name!r:.60} is not an entry with evidence")
    return name
