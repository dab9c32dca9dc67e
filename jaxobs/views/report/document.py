"""The report as a file: the page, and the data of each process in an element of its own, read when it is looked at."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from jaxobs.base.version import __version__
from jaxobs.facts.compilations import CacheLookup, Compilation
from jaxobs.facts.events import as_event, plain
from jaxobs.facts.memory import DeviceMemory
from jaxobs.views.report.kept import encode
from jaxobs.views.report.reading import Report
from jaxobs.views.report.recording import MARKS, MOST_GROUP_SAMPLES, MOST_SAMPLES, Recording, defaults
from jaxobs.web import page

MOST_SAMPLES_TOGETHER = 24_000
MOST_GROUP_SAMPLES_TOGETHER = 480

_KINDS: tuple[Any, ...] = (Compilation, CacheLookup, DeviceMemory, *MARKS)
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_TABLE = str.maketrans(_ESCAPED)


def write(report: Report, out: BinaryIO) -> int:
    """Writes the report as one HTML document, and returns its bytes; raises `OSError` as `out` does."""
    before, after = page.recorded_shell()
    written = 0
    for piece in (before, *_data(report), after):
        written += out.write(piece)
    return written


def _data(report: Report) -> Iterator[bytes]:
    """Elements that hold data and run nothing: the index, and one for each process."""
    index = {
        "source": report.source,
        "version": __version__,
        "notes": list(report.notes),
        "defaults": {kind.kind: defaults(kind) for kind in _KINDS},
        "processes": [_about(each) for each in report.recordings],
    }
    yield _element("recorded", encode(index))
    devices = max(1, sum(each.devices for each in report.recordings))
    # Indices count from 0.
    count = max(each.process_index for each in report.recordings) + 1
    for number, recording in enumerate(report.recordings):
        yield _element(f"recorded-{number}", _process(recording, devices, count))


def _about(recording: Recording) -> dict[str, Any]:
    manifest, ended = recording.manifest, recording.exit
    return {
        "process_index": recording.process_index,
        "pid": recording.pid,
        "program": manifest.program if manifest is not None else None,
        "hostname": manifest.hostname if manifest is not None else None,
        "first": recording.first,
        "last": recording.last,
        "compilations": recording.compiled,
        "seconds": recording.seconds,
        "left_out": recording.compilations.left_out + recording.eager.left_out,
        "left_out_marks": recording.marks.left_out,
        "groups_told": recording.groups_told,
        "exit": as_event(ended) if ended is not None else None,
    }


def _process(recording: Recording, devices: int, process_count: int) -> str:
    samples = recording.memory(
        min(MOST_SAMPLES, MOST_SAMPLES_TOGETHER // devices),
        min(MOST_GROUP_SAMPLES, MOST_GROUP_SAMPLES_TOGETHER // devices),
    )
    parts = {
        "snapshot": encode(plain(recording.snapshot(process_count))),
        "compilations": f"[{','.join((*recording.compilations.texts, *recording.eager.texts))}]",
        "marks": f"[{','.join(recording.marks.texts)}]",
        "memory": encode(samples),
    }
    return "{" + ",\n".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def _element(name: str, json: str) -> bytes:
    """Names and texts of the program cannot end the element: no `<` is left in it."""
    return f'<script type="application/json" id="{name}">{json.translate(_TABLE)}</script>\n'.encode(
        errors="backslashreplace"
    )
