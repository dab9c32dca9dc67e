"""Structure of an exception in a log: whose code raised it, in which phase of the program, and what it asks for.

Each function takes the observation of the last line of a traceback, as `gathering.logs` makes it.
"""

import re
from collections.abc import Collection

from jaxobs.ops.diagnosis.evidence import Observation, clean

IMPORT, SAVE, RESTORE, START, RUN = "import", "save", "restore", "start", "run"
"""Phases of a program: loading modules, writing a checkpoint, reading one, looking for devices and peers, computing."""
MOST_OF_A_REMEDY = 240
"""Characters of a remedy."""

_PACKAGE = re.compile(r"(?:site|dist)-packages[/\\](\w[\w.-]*?)(?:[/\\]|\.py$)")
_PHASES = {
    RESTORE: re.compile(r"\b(?:restore|load|deserialize|from_pretrained|read)\w*\(|\brestor\w+\.py", re.IGNORECASE),
    SAVE: re.compile(r"\b(?:save|serialize|dump|write|export)\w*\(", re.IGNORECASE),
    START: re.compile(r"\bdistributed\.initialize\(|\b(?:local_)?device(?:s|_count)\(|\bbackends?\("),
}
"""Regular expressions of the calls of a traceback, the last of which decides."""
_IMPORT = re.compile(r"^(?:import \w|from [\w.]+ import\b)")
_ASKS = re.compile(
    r"\b(?:can|could|may|might|should) be (?:fixed|resolved|avoided|solved|worked around) by\b|"
    r"\b[Tt]o (?:fix|resolve|avoid|solve|work around|remedy|enable|opt (?:in|out)|suppress) |"
    r"\bDid you (?:mean|forget)\b|\bpip3? install\b|\bstatic_arg\w+|\b[Hh]int: |"
    r"(?:(?:^|[.;:,!?)] )(?:Please|Instead|Perhaps),? (?:also )?|\b[Pp]lease |^|[.;:!?)] )(?:[Tt]ry|[Cc]onsider|[Uu]se|"
    r"[Ss]et|[Ii]nstall|[Uu]pgrade|[Uu]pdate|[Dd]owngrade|[Pp]ass|[Mm]ake sure|[Ee]nsure|[Aa]dd|[Ss]pecify|[Rr]emove|"
    r"[Ii]ncrease|[Dd]ecrease|[Rr]educe|[Rr]evise|[Rr]e-?build|[Rr]einstall|[Dd]efine|[Pp]rovide|[Cc]onvert|[Cc]ast) |"
    r"\b[Yy]ou (?:should|need to|must|can|may (?:want|need) to|might (?:want|need) to) "
)
"""How a message says what to do about it."""
_OF_NO_USE = re.compile(
    r"uninstall the failing plugin package|\breport\b|\bissue\b|\bfor more (?:info|details)|"
    r"^(?:For|See) |\w*(?i:traceback_filtering)|\b(?:TF_CPP|faulthandler|"
    r"XLA_PYTHON_CLIENT_\w+=false to)\b|\bbug\b|^(?:please )?see\b|\bfirst jitted in\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[a-z)\]'`\"][.!?])\s+(?=[A-Z`'\"])|\n(?=\s*(?:[A-Z(*-]|\d\.|\S+ {2,}\S))")


def message(raised: Observation) -> str:
    """Returns the whole message: the line of the exception, and the lines that go on with it."""
    return f"{raised.text}\n{raised.data.get('message', '')}".strip()


def owner(raised: Observation, besides: Collection[str] = ()) -> str:
    """Returns the installed package whose file raised it, besides some; empty for code of the user or of Python."""
    found = map(_PACKAGE.search, reversed(raised.data.get("frames", "").split("\n")))
    return next((name for each in found if (name := each.group(1) if each else "") not in besides), "")


def phase(raised: Observation) -> str:
    """Returns one of the phases; `run` where the calls of the traceback tell none."""
    calls = raised.data.get("calls", "").split("\n")
    if any(_IMPORT.match(each) for each in calls):
        return IMPORT
    for call in reversed(calls):
        for name, pattern in _PHASES.items():
            if pattern.search(call):
                return name
    return RUN


def remedy(raised: Observation) -> str:
    """Returns the sentence of the message that says what to do; empty if none does. Its text comes from outside."""
    for sentence in _SENTENCE.split(message(raised)):
        asks = _ASKS.search(sentence)
        if asks is not None and not _OF_NO_USE.search(sentence):
            said = clean(sentence, 4 * MOST_OF_A_REMEDY).replace('"', "'")
            start = max(0, said.find(clean(sentence[asks.start() :], 40).rstrip(".").replace('"', "'")) - 80)
            short = said if len(said) <= MOST_OF_A_REMEDY else said[start : start + MOST_OF_A_REMEDY]
            return re.sub(r"^(?:[\w.]+(?:Error|Exception): )+", "", short).strip()
    return ""
