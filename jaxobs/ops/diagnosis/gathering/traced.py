"""Tracebacks in a log: whether a line belongs to one, what was raised at its end, and from where."""

import re
from dataclasses import dataclass, field

from jaxobs.ops.diagnosis.gathering.log_lines import LogLine
from jaxobs.ops.diagnosis.gathering.whose import host_of

MOST_CODE = 200
MOST_FRAMES = 4
"""Files of the innermost calls that are kept of a traceback."""
MOST_CALLS = 12
"""Lines of code that are kept of a traceback."""

_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|\bray::\S+ \(pid=\d+")
_CAUGHT = re.compile(
    r"Exception in ASGI application|Exception on \S+ \[[A-Z]+\]|Error handling request|Internal Server Error: /|"
    r"Exception (?:happened|occurred) (?:during|while) (?:the )?processing of (?:the )?request|"
    r"[Ee]xception was never retrieved|Exception in callback|Exception ignored in"
)
"""What comes before a traceback that ends a request or a callback, and not the program."""
_LASTS = re.compile(
    r"Exception in thread |"
    r"\b(?:return|respond|answer|status)\w*\W{1,3}(?:(?:with|code|status|HTTP)\W{1,3})*50[0234]\b(?!\s*[a-z])"
)
"""What comes before a traceback that ended a thread for good, or a request with the server's own error."""
_TRIED = re.compile(
    r"\b(?:attempt|try|trial|retry)\W{0,3}(?P<this>\d{1,4}) ?(?:/|of) ?(?P<all>\d{1,4})\b.{0,60}"
    r"|\b(?:giving|gave) up\b.{0,80}|\bfailed after \d{1,4} (?:attempts|tries|retries)\b|\bretrying\b|\bwill retry\b",
    re.IGNORECASE,
)
"""What a program says of an exception for which it tries again, or tried for the last time."""
_ELSE = re.compile(r"\bfall(?:ing|s)?[ -]?back|\bskipp|\bignor|\binstead\b|\bdefault", re.IGNORECASE)
"""What a program says where it has another way after the last try."""
_TOLD = re.compile(r".{0,200}?[:\s(](?P<raised>(?:[A-Za-z_]\w*\.)*_*[A-Z]\w*(?:Error|Exception): \S.*)")
"""An exception in what a logger says."""
_GROUP = re.compile(r" *\+ (?=Exception Group Traceback)")
_IN_GROUP = re.compile(r" *(?:\| ?|\+-[-+]*(?: ?(?:\d+|\.\.\.) -+)?$)")
"""What is before a line of an exception group: its bars, or all of a line between two exceptions."""
_OF_GROUP = re.compile(r"(?:\w+\.)*\w*ExceptionGroup: ")
_FRAME = re.compile(
    r"\s*File (?:\"(?P<file>[^\"]+)\", line (?P<line>\d+)(?:, in (?P<function>\S+))?|"
    r"(?P<cell>[^\s:]+):(?P<row>\d+)(?:, in |$))|\[?(?P<old>[/~][^\s\]]+\.py)\]?\S* in |"
    r"\u2502 (?P<rich>/\S+\.py):(?P<number>\d+) in "
)
"""Where a call of a traceback is: as Python tells it, IPython, IPython before its eighth version, and Rich."""
_CALL = re.compile(
    r"\s*File (?:\"[^\"]+\", line \d+, in |[^\s:]+:\d+(?:, in |$))|[/~][^\s\]]+\.py in (?:<module>|\w+)\("
)
_NOT_THE_USERS = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d|^<(?!stdin|ipython)|[/\\]jax[/\\]_src[/\\]"
)
"""In the name of a file: it belongs to a package or to Python itself."""
_OF_CELL = re.compile(
    r"-+> *\d+ ?(?P<code>.*)|File [^\s:]+:\d+|Cell In|<ipython-input-|\[?[/~]\S+ in |\d+ frames$|\(\.\.\.\)|\[\.\.\."
)
"""A line of a traceback of IPython that is not indented."""
_OF_RICH = re.compile(r"\u2502 *\u2771 *\d+ [ \u2502]*| *\u2502$|\u2502(?! *\u2771).*")
"""What is around the line of code in a traceback of Rich, and the whole of its other lines."""
_RAISED = re.compile(
    r"(?!.*: Above is the stack outside of JIT)"  # Equinox, whose message has another traceback
    r"(?P<type>(?:[A-Za-z_][\w]*\.)*_*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Timeout|Warning)?|"
    r"(?:[A-Za-z_]\w*\.)+\w*error)(?:: |$)"
)
_BARE = re.compile(r"(?:[A-Za-z_]\w*\.)*_*[A-Z]\w*(?:Error|Exception): \S")
_CHAINED = re.compile(r"(?:During handling of|The above exception was)")
_SECTION = re.compile(r"[=_]{5,} .* [=_]{5,}$")
"""A heading of pytest."""
_RECORDED = 30
"""Lines behind the frames of a traceback that may come before what was raised."""


def is_of_a_call(message: str) -> bool:
    """Returns whether a line is a call in a traceback, or code of one."""
    return message.startswith((" ", "\t", 'File "', "\u2502", "\u2570")) or _OF_CELL.match(message) is not None


def ends_a_message(message: str) -> bool:
    """Returns whether a line behind an exception no longer belongs to its message."""
    return any(each.match(message) for each in (_CHAINED, _FRAME, _SECTION)) or bool(_TRACEBACK.search(message))


def is_bare(line: LogLine) -> bool:
    """Returns whether a line tells an exception, and not as what a logger says."""
    return not line.level and _BARE.match(line.message) is not None


NEXT_TRY, LAST_TRY = "next", "last"


def tried(message: str) -> str:
    """Returns whether a program tries again after an exception, or tried for the last time; "" if it says neither."""
    found = [*_TRIED.finditer(message)]
    if not found or _ELSE.search(message):
        return ""
    counted = next((each for each in found if each["all"]), None)
    if counted is not None:
        return LAST_TRY if int(counted["this"]) >= int(counted["all"]) else NEXT_TRY
    return NEXT_TRY if all("retry" in each[0].lower() for each in found) else LAST_TRY


def told_last(line: LogLine) -> str:
    """Returns the exception for which a logger says that the program tried for the last time; "" if there is none."""
    if line.level not in ("W", "E", "F") or tried(line.message) != LAST_TRY:
        return ""
    found = _TOLD.match(line.message)
    return found["raised"] if found else ""


@dataclass(slots=True)
class Tracebacks:
    """The traceback that each process of a log is in the middle of."""

    _hosts: dict[str, str] = field(default_factory=dict)
    """By process: the host that the first line of its traceback names."""
    _behind: dict[str, int] = field(default_factory=dict)
    """By process: how many lines behind the frames of its traceback were seen so far."""
    _frames: dict[str, list[str]] = field(default_factory=dict)
    """By process: the files of the innermost calls in its traceback."""
    _calls: dict[str, list[str]] = field(default_factory=dict)
    """By process: the latest lines of code in its traceback."""
    _places: dict[str, str] = field(default_factory=dict)
    """By process: the innermost call in its traceback that is in the user's own code."""
    _said: dict[str, str] = field(default_factory=dict)
    """By process: the latest line that belongs to no traceback."""
    _grouped: set[str] = field(default_factory=set)
    """Processes that are in the middle of an exception group."""

    def is_open(self, process: str) -> bool:
        """Returns whether the lines of a process belong to a traceback."""
        return process in self._behind

    def without_bars(self, process: str, message: str) -> str:
        """Returns a line of an exception group as Python prints it of a single exception; other lines as they are."""
        if (head := _GROUP.match(message)) is not None:
            self._grouped.add(process)
            return message[head.end() :]
        if process in self._grouped:
            if (bars := _IN_GROUP.match(message)) is not None:
                return message[bars.end() :]
            self._grouped.discard(process)
        return message

    def host(self, process: str) -> str:
        """Returns the host that the first line of its traceback names, and forgets it."""
        return self._hosts.pop(process, "")

    def called(self, process: str) -> dict[str, str]:
        """The code and the files from which something was raised."""
        calls, said = self._calls.pop(process, []), self._said.get(process, "")
        told = {
            "code": calls[-1] if calls else "",
            "frames": "\n".join(self._frames.pop(process, ())),
            "calls": "\n".join(calls),
            "where": self._places.pop(process, ""),
            "caught": "yes" if _CAUGHT.search(said) else "",
            "lasts": "yes" if _LASTS.search(said) or tried(said) == LAST_TRY else "",
            "again": "yes" if tried(said) == NEXT_TRY else "",
        }
        return {name: text for name, text in told.items() if text}

    def raised(self, process: str, line: LogLine) -> bool:
        """Whether the line is the last of a traceback: what was raised, with its message."""
        if _TRACEBACK.search(line.message):
            self._behind[process] = 0
            self._frames[process], self._calls[process] = [], []
            self._places.pop(process, None)
            self._hosts[process] = host_of(line.message)
            return False
        if process not in self._behind and _CALL.match(line.message):  # Its first line was not copied.
            self._behind[process] = 0
        if process not in self._behind:
            self._said[process] = line.message
            return False
        if not line.message:
            return False
        if is_of_a_call(line.message):
            self._take_call(process, line.message)
            return False
        if _CHAINED.match(line.message):
            del self._behind[process]
            return False
        self._behind[process] += 1
        if _OF_GROUP.match(line.message):  # Each exception of the group follows.
            del self._behind[process]
            return False
        if _RAISED.match(line.message):
            del self._behind[process]
            return True
        if self._behind[process] > _RECORDED:
            del self._behind[process]
        return False

    def _take_call(self, process: str, message: str) -> None:
        """Keeps the file or the code of one line of a traceback."""
        if frame := _FRAME.match(message):
            file = frame["file"] or frame["cell"] or frame["old"] or frame["rich"]
            self._frames[process] = [*self._frames.get(process, ()), file[-MOST_CODE:]][-MOST_FRAMES:]
            if not _NOT_THE_USERS.search(file):
                line, function = frame["line"] or frame["row"] or frame["number"], frame["function"]
                place = f"{file[-MOST_CODE:]}:{line}" if line else file[-MOST_CODE:]
                self._places[process] = f"{place} in {function}" if function and function != "<module>" else place
            return
        if message.startswith("\u2502") and not (message := _OF_RICH.sub("", message)):
            return
        cell = _OF_CELL.match(message)
        code = (cell.group("code") or "" if cell else message).strip()
        if code and not code.startswith(("File ", "^", "~")):
            self._calls[process] = [*self._calls.get(process, ()), code[:MOST_CODE]][-MOST_CALLS:]
