"""Failures as pytest prints them, written as Python prints tracebacks, which the rest of the reader knows.

pytest names the file behind the code, marks the message with `E`, and names the innermost file behind the message::

    >       trained = restore(path)
    tests/test_train.py:12:
    E       ValueError: no checkpoint
    train/restoring.py:40: ValueError
"""

import re

from jaxobs.ops.diagnosis.gathering.collected import Numbered

_BEFORE = r"(?P<before>(?:\S+Z? )?)"
"""A time that whatever ran the tests put before each line."""
_MARK = re.compile(_BEFORE + r"E(?P<indent> {3,})(?P<text>\S.*)$")
_FRAME = re.compile(
    _BEFORE + r"(?P<file>[^\s:]+\.py):(?P<line>\d+): ?(?:in (?P<function>\S+)|(?P<raised>(?:\w+\.)*[A-Z]\w*))?$"
)
_CODE = re.compile(_BEFORE + r"> {3,}(?P<text>\S.*)$")
_BETWEEN = re.compile(_BEFORE + r"(?:_ ){8,}_?$")


def as_python(lines: list[Numbered]) -> list[Numbered]:
    """Returns the lines of a log, with tracebacks of Python for failures of pytest; the same lines if it has none."""
    if not any("E   " in text and _MARK.match(text) for _, text in lines):
        return lines
    found: list[Numbered] = []
    opened, message, indent = False, None, 0
    for number, text in lines:
        mark, frame, code = _MARK.match(text), _FRAME.match(text.rstrip()), _CODE.match(text)
        if frame is not None and frame["raised"] and message is not None:
            found.insert(message, (found[message][0], _place(frame)))
            opened, message = False, None
        elif frame is not None and not frame["raised"]:
            if not opened:
                found.append((number, f"{frame['before']}Traceback (most recent call last):"))
            found.append((number, _place(frame)))
            opened, message = True, None
        elif mark is not None:
            if not opened:
                found.append((number, f"{mark['before']}Traceback (most recent call last):"))
                opened = True
            if message is None:
                message, indent = len(found), len(mark["indent"])
            deeper = " " * (len(mark["indent"]) - indent)
            found.append((number, f"{mark['before']}{deeper}{mark['text']}"))
        elif opened and code is not None:
            found.append((number, f"{code['before']}    {code['text']}"))
        elif not (opened and _BETWEEN.match(text.rstrip())):
            found.append((number, text))
    return found


def _place(frame: re.Match[str]) -> str:
    function = f", in {frame['function']}" if frame["function"] else ""
    return f'{frame["before"]}  File "{frame["file"]}", line {frame["line"]}{function}'
