"""A record of the data set cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.damaged_files import DAMAGED, DOES_WITHOUT, OF_DATA, READS_INPUT, STORE
from jaxobs.ops.diagnosis.evidence import RAISED, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised


def _wanted(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Without the records that the pipeline does without."""
    return [each for each in signs if each.name == RAISED or not re.search(DOES_WITHOUT, each.text)]


KNOWN = Knowledge(
    title="A file of the input data is damaged",
    impact=ENDED,
    signs=(
        Line(
            r"(?:truncated|corrupted) record at \d+|DataLossError",
            unless=r"HTTP|[Pp]ermission denied|[Cc]heckpoint|TensorSliceReader",
        ),
        Line(
            r"UnidentifiedImageError|cannot identify image file|image file is truncated|Invalid (?:JPEG|PNG) data|"
            r"(?:Could not|Failed to|Unable to) (?:decode|parse) (?:image|example|record|serialized|sample)|"
            r"Error parsing (?:message|proto)|Unable to decode bytes as",
            unless="compilation cache",
        ),
        Line(
            r"Unable to (?:synchronously )?open (?:file|object) .{0,60}truncated file|[Ii]nvalid checksum|"
            r"NonMatchingChecksumError|has wrong checksum|"
            r"Invalid Riegeli"
        ),
        Line(
            r"ArrowInvalid\b.{0,20}: JSON parse error: (?:Invalid|Missing|The document|Terminat|Unexpected)|"
            r"ArrowInvalid: .{0,120}(?:magic bytes|[Cc]orrupt|truncated|footer)|Compressed file ended before|"
            r"(?:array_?record|riegeli|tfrecord|parquet|shard).{0,160}(?:DATA_LOSS|[Cc]orrupt|[Tt]runcated|checksum)|"
            r"zlib\.error: |BadGzipFile|tarfile\.ReadError|unexpected end of data"
        ),
        Line(DAMAGED, calls=OF_DATA),
        Raised(frames=READS_INPUT, about=rf"{STORE}(?:does not exist|NOT_FOUND|DATA_LOSS|[Cc]orrupt|[Ii]nvalid)"),
        Raised(frames=READS_INPUT, about=rf"(?:NOT_FOUND|DATA_LOSS): {STORE}"),
        Line(DAMAGED, weak=True),
    ),
    narrow=_wanted,
    follows=("disk_full", "storage_unavailable"),
    collect="The whole traceback: the code that read the file shows whether it is a checkpoint or part of the input.",
    fix=(
        "Find the file and the record that the text names, write or download it again and compare its checksum; let "
        "the pipeline count and skip records that cannot be read."
    ),
)
