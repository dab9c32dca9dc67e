"""The record of everything that was done or refused: JSON lines that are only appended to, and the desk's only memory.

Limits, cool-downs, approvals and the breaker are worked out from these lines, so that a restart forgets nothing and
there are no two accounts that could differ.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxobs.base import json_lines, private_files
from jaxobs.base.errors import ParameterError
from jaxobs.facts.events import timestamp

NAME = "actions.jsonl"
MOST_BYTES = 64 * 2**20
"""A longer record means that something is wrong: nothing is done any more until a person has moved it away."""
MOST_TEXT = 500
READ_BYTES = 4 * 2**20
"""Bytes that are read back: days of ordinary work, and more than any limit looks back."""
MINUTES = 24 * 60.0
"""How long a question is shown to a person. How long an answer holds is the policy's word (`approval_minutes`)."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SECRET = re.compile(r"(?i)\b(bearer|token|password|secret|api[-_]?key)(\s*[=:]\s*|\s+)\S+")
_ASKED = ("action", "target", "job", "incident")

Line = Mapping[str, Any]


@dataclass(slots=True)
class Question:
    """A plan that a person is asked about. An approval is for one plan, for a while, and for one attempt."""

    line: Line
    approver: str = ""
    """`human:NAME`; empty while nobody has approved it."""
    is_untried: bool = False
    """Whether nobody has asked for the action since it was approved."""


class Record:
    """The file in a directory of the agent's."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self.directory = directory
        self.path = directory / NAME
        self.clock = clock

    def add(self, **line: Any) -> None:
        """Appends a line; it is on the disk when this returns.

        Raises:
          OSError: it could not be written, or the record is too long; nothing may be done then.
        """
        now = self.clock()
        told = json.dumps({"time": timestamp(now), "at": now, **plain(line)}, ensure_ascii=False)
        data = f"{told}\n".encode(errors="replace")
        private_files.make_folders(self.directory)
        file = private_files.open_file(self.path, os.O_RDWR | os.O_APPEND)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                data = b"\n" + data  # A line broke off when its writer was killed: it costs no other one.
            if size + len(data) > MOST_BYTES:
                raise OSError(f"{self.path} is larger than {MOST_BYTES:,} bytes")
            if os.write(file, data) != len(data):
                raise OSError(f"{self.path} could not be written whole")
            os.fsync(file)
        finally:
            os.close(file)

    def lines(self) -> list[dict[str, Any]]:
        """Returns the latest lines, the oldest first, without those that are damaged.

        Raises:
          OSError: the file is there and cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - READ_BYTES))
                data = file.read(READ_BYTES)
        except FileNotFoundError:
            return []
        found = []
        for text in data.splitlines():
            try:
                line = json_lines.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and isinstance(line.get("at"), int | float) and line.get("decision"):
                found.append(line)
        return found

    def questions(self, minutes: float) -> dict[str, Question]:
        """Returns the plans that wait for a person's word or were approved, by id, the oldest first.

        An approval is used up by an attempt, also by one that a gate refused: the plan waits again then.
        """
        oldest = self.clock() - 60 * minutes
        found: dict[str, Question] = {}
        for line in self.lines():
            plan, decision = str(line.get("id")), line["decision"]
            if decision == "approved":
                question = found.pop(plan, None)
                if question is not None and line["at"] > oldest:
                    found[plan] = Question(question.line, str(line.get("actor") or "somebody"), is_untried=True)
                continue
            for question in found.values():
                if all(question.line.get(name, "") == line.get(name, "") for name in _ASKED):
                    question.is_untried = False
                    if decision == "refused":
                        question.approver = ""
            if decision == "approval_wanted":
                found[plan] = Question(line)
            elif decision in ("begun", "denied"):
                found.pop(plan, None)
        return {plan: each for plan, each in found.items() if each.approver or each.line["at"] > oldest}

    def waiting(self, minutes: float = MINUTES) -> dict[str, Line]:
        """Returns the lines of the plans that wait for a person's word, by id, the oldest first."""
        return {plan: each.line for plan, each in self.questions(minutes).items() if not each.approver}

    def decide(self, plan: str, approve: bool, by: str) -> str:
        """Approves or denies a plan that waits for a person's word; returns what it would do.

        Only the command `jaxobs agent approve` calls this: no HTTP path and no tool of an assistant does.

        Raises:
          ParameterError: no such plan waits.
          OSError: the record cannot be written.
        """
        waiting = self.waiting()
        if plan not in waiting:
            listed = ", ".join(waiting) or "none"
            raise ParameterError(f"No plan `{plan[:40]}` waits for approval. Waiting: {listed}.")
        line = waiting[plan]
        kept = {name: line[name] for name in (*_ASKED, "plan") if name in line}
        self.add(decision="approved" if approve else "denied", id=plan, actor=f"human:{by}", **kept)
        return str(line.get("plan", ""))


def plain(value: Any) -> Any:
    """Returns a value for the record: bounded texts, without control characters and what looks like a secret."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items() if each is not None}
    return _SECRET.sub(r"\1\2***", _CONTROL.sub(" ", value))[:MOST_TEXT] if isinstance(value, str) else value
