"""A checkpoint is incomplete, damaged or gone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.damaged_files import (
    DAMAGED,
    DOES_WITHOUT,
    OF_A_CHECKPOINT,
    OF_SO_MANY_PROCESSES,
    READS_INPUT,
    STORE,
)
from jaxobs.ops.diagnosis.evidence import RAISED, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

_OF_CHECKPOINTS = (
    r"(?:orbax/|flax/training/checkpoints|array_serialization/|etils/epath/|levanter/checkpoint|t5x/checkpoint|"
    r"paxml/checkpoint)[^\n]*\Z"
)
"""Files of the libraries that save and restore."""
_OF_CHECKPOINTS_BUT_ONE = r"orbax/[^\n]*(?:\n[^\n]*/json/\w+\.py)*\Z"
"""Orbax has Python's own reader of JSON read its metadata."""

_DELETES = re.compile(r"\b(?:rmtree|unlink|remove|rmdir|_?delete\w*)\(")

_UNFINISHED = re.compile(r"(?i:\b(?:incomplete|unfinished|temporary|tmp|not (?:finalized|committed))\b)")
"""Of a save that was interrupted: the next run may do without it."""


def _wanted(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Without what is missed by nobody, for it is to be deleted, and what the reader of the input misses."""
    return [
        each
        for each in signs
        if not (
            ("FileNotFoundError" in each.text and _DELETES.search(each.data.get("code", "")))
            or re.search(OF_SO_MANY_PROCESSES, each.text)
            or (re.search(STORE, each.text) and re.search(READS_INPUT, each.data.get("frames", "")))
            or (each.name != RAISED and _UNFINISHED.search(each.text) and re.search(DOES_WITHOUT, each.text))
        )
    ]


KNOWN = Knowledge(
    title="The checkpoint is incomplete, damaged or not there",
    impact=ENDED,
    signs=(
        Raised(
            frames=_OF_CHECKPOINTS,
            about=r"^(?:[\w.]+: )*(?:FileNotFound|NotADirectory)Error|"
            r"^(?:[\w.]+: )*\w+Error: (?!.{0,120}(?:not found in jax\.|exist in provided `global_mesh`)).{0,200}"
            r"(?:does not exist|not found|[Nn]o (?:step path|metadata|ArrayMetadata|commit|snapshots)|is missing|"
            r"are missing|contains no |empty checkpoint|not finalized|Failed to read metadata|is a temporary item)",
        ),
        Line(r"Error no file named|does not appear to have a file named"),
        Line(
            STORE,
            unless=r'Expected "\w+" (?:of|to be)|HTTP response code|PERMISSION_DENIED|UNAVAILABLE|DEADLINE_EXCEEDED|'
            r"CURL error|[Cc]ould not resolve|encountered an internal error",
        ),
        Line("No structure could be identified for the checkpoint"),
        Line(
            "(?:[Cc]heckpoint|_METADATA|_CHECKPOINT_METADATA|commit_success).{0,200}(?:not found|"
            "does not exist|is missing|incomplete|corrupt|No such file)",
            unless=r"(?:not found|missing|absent) (?:in|from) (?:the )?checkpoint|"
            r"missing (?:required )?(?:keys?|param\w*|weights?|tensors?|layers?)\b",
        ),
        Line("FileNotFoundError: .{0,200}(?:ckpt|checkpoint)"),
        Line("(?:ocdbt|tensorstore|checkpoint).{0,200}DATA_LOSS|DATA_LOSS.{0,200}(?:ocdbt|tensorstore|checkpoint)"),
        Line("InvalidHeaderDeserialization|HeaderTooLarge|incomplete metadata, file not fully covered"),
        Line(
            r"CRC-?32C?\b.{0,40}(?:mismatch|does not match|failed)|Metadata file does not exist|"
            r"[Cc]heckpoint .{0,120}(?:not finalized|was not committed)"
        ),
        Line("Error while deserializing header"),
        # Orbax: a step that was not committed, or lacks what is read from it.
        Line(
            r"to contain the \"?commit_success\.txt\"? file|Found empty checkpoint|missing the indicator file|"
            r"Could not auto-detect checkpoint layout|Failed to load checkpoint using AUTO resolution|"
            r"\borbax-checkpoint-tmp\b.{0,120}(?:not found|does not exist|No such file|incomplete)"
        ),
        Raised(frames=_OF_CHECKPOINTS_BUT_ONE, about=r"^(?:[\w.]+\.)?JSONDecodeError: "),
        Raised(
            about=r"[Nn]o (?:valid )?checkpoints? (?:was |were |could be )?(?:found|exists?)|"
            r"[Nn]o checkpoint .{0,40}(?:found|exists)"
        ),
        Line(
            r"Unpack failed: incomplete input|unpack\(b\) received extra data|msgpack\.exceptions|"
            r"msgpack\w*: (?:ExtraData|FormatError|OutOfData|UnpackValueError)|"
            r"PytorchStreamReader failed|invalid magic number"
        ),
        Line(DAMAGED, calls=OF_A_CHECKPOINT),
        Line(DAMAGED, weak=True),
        Line(r"[Ii]ncomplete checkpoint|[Cc]heckpoint .{0,80}is incomplete"),
    ),
    narrow=_wanted,
    follows=("disk_full",),
    collect="The whole traceback: the code that read the file shows whether it is a checkpoint or part of the input.",
    fix=(
        "Restore an earlier step; find out why the last save did not end: a full disk, a process "
        "that was killed while it saved, a bucket that removes old objects."
    ),
    runbook="JaxCheckpointWorkAtRisk",
)
