"""Functions for the errors of a program."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis import kinds, tracebacks
from jaxobs.ops.diagnosis.evidence import AFTERMATH, BEFORE, END, EVENT, LINE, METRIC, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import Functions
from jaxobs.ops.diagnosis.known.storage import DAMAGED

_CALLS = "jax_function_calls_total"
_LEAST_REQUESTS = 5
_SHARE_OF_CALLS = 0.01
"""Share of a function's calls: programs that try what fits, and then run for long, stay below."""
_APART = 300
"""Lines of a log between two requests that fail, tracebacks and all: beyond, they are exceptions."""


def _often(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns failed requests in a log that come close behind each other, and errors that a count bears out."""
    lines: defaultdict[tuple[str, str], list[Observation]] = defaultdict(list)
    for each in signs:
        if each.kind == LINE:
            lines[each.source, each.process].append(each)
    often = {
        key
        for key, some in lines.items()
        if len(some) >= _LEAST_REQUESTS and some[_LEAST_REQUESTS - 1].place - some[0].place <= _APART * _LEAST_REQUESTS
    }
    kept = [each for each in signs if each.kind != LINE or (each.source, each.process) in often]
    counted = any(not each.name.startswith("error:") for each in kept)
    return [each for each in kept if counted and each.data.get("uncaught") != "yes"]


def _seldom(evidence: Evidence, sign: Observation) -> bool:
    """Whether few of the calls of that function failed."""
    calls = [
        each.value or 0.0
        for each in evidence.of_kind(METRIC)
        if each.name == _CALLS
        and each.process == sign.process
        and each.data.get("function") == sign.data.get("function")
    ]
    return sign.kind == METRIC and bool(calls) and (sign.value or 0.0) < _SHARE_OF_CALLS * max(calls)


_OF_SOME_STEPS = re.compile("input_pauses|slow_steps")


def _by_itself(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """What follows from another finding is fixed with that one; what is information counts if each step has it."""
    return [
        each
        for each in signs
        if "caused_by" not in each.data
        and (each.data.get("severity") != "info" or not _OF_SOME_STEPS.search(each.name))
    ]


_TOLD_FIRST = ("jax._src.source_info_util.JaxStackTraceBeforeTransformation", "jax.errors.SimplifiedTraceback")
"""What JAX tells before the exception itself."""
_ENDS = (*_TOLD_FIRST, "KeyboardInterrupt", "SystemExit", "GeneratorExit", "asyncio.CancelledError", "CancelledError")
_ANSWERED = re.compile(r"HTTP/[12]\.[01]\S{0,8}\" 500\b|\"POST \S{1,200} HTTP/[12]\.[01]\S{0,8}\" 2\d\d\b")
"""A server told its client of it, or answers the next request: it goes on."""


def _is_told(raised: Observation) -> bool:
    """Whether an exception needs no traceback: a launcher tells of its end, or its message says what to do about it."""
    if "ended" in raised.data:
        return True
    return bool(tracebacks.remedy(raised)) and kinds.found("program_error", [raised]) is not None


def _uncaught(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """The last lines of tracebacks, and what jaxobs saw leave the program; without a traceback anything may say it."""
    raised = [
        each
        for each in signs
        if not each.text.startswith(_ENDS)
        and "caught" not in each.data
        and ("bare" not in each.data or _is_told(each))
        and ("lasts" in each.data or not _ANSWERED.search(each.data.get("next", "")))
        and not re.search(DAMAGED, each.text)
        and (each.kind != EVENT or each.data.get("uncaught") == "yes")
    ]
    of_its_own = {(each.source, each.process) for each in raised if not AFTERMATH.search(each.text)}
    return [each for each in raised if not AFTERMATH.search(each.text) or (each.source, each.process) not in of_its_own]


_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b(?::|$)|Traceback \(most recent call last\)|^(?:FATAL|"
    r"fatal|panic)\b|"
    r"[Ee]xit(?:ed)?(?: with)?(?: exit)?[ -]?(?:[Cc]ode|status)[:= ]*\(?[1-9]\d*\b|"
    r"terminated with (?:exit )?code .?[1-9]|^Error from server \(|returned non-zero exit status|"
    r"^(?:srun|slurmstepd|mpirun|docker|kubelet|ORTE)\b.{0,20}(?:[Ee]rror|fatal)\b|"
    r"\b[Cc]rashed\b|\bWarning\s+(?:\w*Failed\w*|\w+Error|BackOff)\s"
)
"""An exception without its traceback, a traceback that is cut off, an end that is no success."""

_HARMLESS = re.compile(
    r"Delay kernel timed out|Unable to register cu\w+ factory|computation placer already registered|"
    r"Constant folding an instruction|Very slow compile|^\**$|This isn't necessarily a bug|"
    r"The operation took \d|not a git repository|omputed? .{0,40}sub-optimal|PredictCost|[Ss]uccessful NUMA node read|"
    r"\d%\|.{0,200}\d/\d+ \[\d+:\d\d"
)
"""What is said as an error and is none."""


def _last_words(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Errors that nothing knows, behind which a process says nothing more."""
    known = {(each.source, each.place) for each in evidence.of_kind(LINE) if "bare" not in each.data}
    ended = {(each.source, each.process) for each in evidence.of_kind(END)}
    return [
        each
        for each in signs
        if (each.level in ("E", "F") or _ERROR.search(each.text) or _ended_in_trouble(each, known))
        and not _HARMLESS.search(each.text)
        and (each.source, each.place) not in known
        and (each.source, each.process) not in ended
    ]


def _ended_in_trouble(last: Observation, known: set[tuple[str, int]]) -> bool:
    """Whether an error comes close before the last line, which may tell what to do about it."""
    if last.level in ("I", "D"):
        return False
    trouble = False
    for place, _, text in (each.partition(" ") for each in last.data.get(BEFORE, "").split("\n")):
        if _ERROR.search(text) and not _HARMLESS.search(text):
            # A known exception also explains the traceback above it.
            trouble = (last.source, int(place)) not in known
    return trouble


FUNCTIONS: Mapping[str, Functions] = {
    "failing_function": {"narrow": _often, "ordinary": _seldom},
    "process_finding": {"narrow": _by_itself},
    "program_error": {"narrow": _uncaught},
    "unknown_error": {"narrow": _last_words},
}
