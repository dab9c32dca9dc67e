"""Functions for the faults of checkpoints and input."""

import re
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import RAISED, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import Functions

DAMAGED = r"BadZipFile|UnpicklingError|pickle data was truncated|invalid load key|Ran out of input"
"""What a file of any purpose raises."""

STORE = "Error (?:opening|reading) ..?(?:zarr|zarr3|ocdbt|neuroglancer).{0,400}"
"""What TensorStore raises, which keeps checkpoints and caches of the input."""
READS_INPUT = (
    r"(?s:\A(?!.*(?:orbax|checkpoint|serialization)))(?s:.*)"
    r"(?:levanter/(?:store|data)/|xarray_tensorstore|input_pipeline|"
    r"(?:\A|[/_\n])data(?:sets?|loaders?|_?load(?:er|ing)s?|_pipeline|_sources?)?(?:/[^\n/]+)?\.py)"
)
"""In the files of the innermost calls."""

DOES_WITHOUT = (
    r"(?i:\b(?:remov|delet|skip+|ignor|drop+|discard|clean)(?:ed|ing)\b|"
    r"\b(?:remove|delete|skip|ignore|drop|discard)s\b)"
)
"""Says that what is damaged is left out, as it was meant to be."""

OF_SO_MANY_PROCESSES = r"\bprocess_\d+-of-\d+\.json['\"]? (?:does not exist|not found)"
"""The file of a process's input, which is named after how many processes there are: the save was of another number."""

_DELETES = re.compile(r"\b(?:rmtree|unlink|remove|rmdir|_?delete\w*)\(")

_UNFINISHED = re.compile(r"(?i:\b(?:incomplete|unfinished|temporary|tmp|not (?:finalized|committed))\b)")
"""Text of a save that was interrupted: the next run may do without it."""


def _missed_checkpoints(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns signs of files that somebody misses: none that the job deletes, and none of the input's reader."""
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


_LEAST_WAITING = 30.0
"""Seconds of waiting: a cold file cache or a shuffle buffer that fills is over by then."""
_LEAST_OF_A_SHORT_RUN = 10.0
"""Seconds of waiting in a run so short that the process itself counts the finding as information."""
_SECONDS_OF_DECLARED = 300.0
"""Seconds where an input is declared: its first wait, which may be long, is counted, and the finding leaves it out."""
_SHARE = 0.5
"""Share of the time in steps and waiting for input, as in the finding `input_bound`."""
_SHARE_OF_ALL = 0.25
"""Share of all time: what started a minute ago is compiling, and has made a few steps."""


def _is_small_wait(evidence: Evidence, sign: Observation) -> bool:
    """Whether a process waits for its input for a small part of its time, or for a few seconds in all."""
    if sign.data.get("severity") == "info":
        return float(sign.data.get("lost", 0)) < _LEAST_OF_A_SHORT_RUN
    if sign.name != counters.TIME:
        return False
    steps = counters.total(evidence, sign, counters.TIME, category="step")
    waiting = counters.total(evidence, sign, counters.TIME, category="input_wait")
    if steps == 0 or waiting < _SHARE * (waiting + steps):
        return True
    declared = counters.total(evidence, sign, counters.BATCHES) > 0
    everything = counters.total(evidence, sign, counters.TIME)
    return waiting <= (_SECONDS_OF_DECLARED if declared else _LEAST_WAITING) or waiting < _SHARE_OF_ALL * everything


def _missed_records(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Without the records that the pipeline does without."""
    return [each for each in signs if each.name == RAISED or not re.search(DOES_WITHOUT, each.text)]


FUNCTIONS: Mapping[str, Functions] = {
    "checkpoint_damaged": {"narrow": _missed_checkpoints},
    "input_bound": {"ordinary": _is_small_wait},
    "input_damaged": {"narrow": _missed_records},
}
PARTS: Mapping[str, str] = {"damaged": DAMAGED, "store": STORE, "reads_input": READS_INPUT}
