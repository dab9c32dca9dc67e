"""The record of everything that was done or refused: JSON lines that are only appended to, and the desk's only memory.

Limits, cool-downs, approvals and the breaker are worked out from these lines, so that a restart forgets nothing and
there are no two accounts that could differ. Only the kill switch is a file of its own, which holds without the record.
"""

import contextlib
import itertools
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxobs.base import json_lines, private_files
from jaxobs.base.errors import ParameterError
from jaxobs.facts.events import timestamp

NAME = "actions.jsonl"
STOP_FILE, STOP_VARIABLE = "actions.stop", "JAXOBS_AGENT_STOP"
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

Line = dict[str, Any]


class Record:
    """The record in a directory of the agent's, and the kill switch next to it."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self.directory = directory
        self.path = directory / NAME
        self.clock = clock
        self._switch = directory / STOP_FILE

    def add(self, **line: Any) -> None:
        """Appends a line, which is on the disk then. Raises OSError if it is not: nothing may be done."""
        now = self.clock()
        told = json.dumps({"time": timestamp(now), "at": now, **plain(line)}, ensure_ascii=False)
        data = f"{told}\n".encode(errors="replace")
        private_files.make_folders(self.directory)
        with open(private_files.open_file(self.path, os.O_RDWR | os.O_APPEND), "ab+", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                data = b"\n" + data  # A line broke off when its writer was killed: it costs no other one.
            if size + len(data) > MOST_BYTES:
                raise OSError(f"{self.path} is larger than {MOST_BYTES:,} bytes")
            if file.write(data) != len(data):
                raise OSError(f"{self.path} could not be written whole")
            os.fsync(file)

    def lines(self) -> list[Line]:
        """Returns the latest lines that are whole, the oldest first. Raises OSError if the file cannot be read."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - READ_BYTES))
                found = [line for _, line in json_lines.objects(file, json_lines.Damage())]
        except FileNotFoundError:
            return []
        return [each for each in found if isinstance(each.get("at"), int | float) and each.get("decision")]

    def questions(self, minutes: float = MINUTES) -> dict[str, Line]:
        """Returns the latest plan of each request that waits for a person's word or was approved, by the plan's id.

        A line is that of the question; once it was approved, with its `approver`. An approval is for one attempt: also
        one that a gate refused, or that came to another plan, uses it up.
        """
        found: dict[tuple[str, ...], Line] = {}
        for line in self.lines():
            asked, decision = tuple(line.get(name, "") for name in _ASKED), line["decision"]
            question = found.get(asked)
            if decision == "approval_wanted":
                found[asked] = line
            elif decision in ("begun", "denied"):
                found.pop(asked, None)
            elif question is not None and decision == "approved":
                if question.get("id") == line.get("id"):
                    found[asked] = {**question, "at": line["at"], "approver": line.get("actor")}
            elif question is not None:
                found[asked] = {name: each for name, each in question.items() if name != "approver"}
        oldest = self.clock() - 60 * minutes
        return {str(each.get("id")): each for each in found.values() if each["at"] > oldest}

    def waiting(self) -> dict[str, Line]:
        """Returns the lines of the plans that wait for a person's word, by id."""
        return {plan: each for plan, each in self.questions().items() if "approver" not in each}

    def failures(self) -> int:
        """Returns how many actions failed in a row since the last success, or since a person closed the breaker."""
        ended = [each["decision"] for each in self.lines() if each["decision"] in ("done", "reset", "failed")]
        return len(list(itertools.takewhile("failed".__eq__, reversed(ended))))

    def decide(self, plan: str, approve: bool, by: str) -> str:
        """Approves or denies a plan that waits for a person's word; returns what it would do.

        Only the command `jaxobs agent approve` calls this: no HTTP path and no tool of an assistant does. Raises
        ParameterError if no such plan waits, OSError as `add` does.
        """
        waiting = self.waiting()
        if plan not in waiting:
            raise ParameterError(f"No plan `{plan[:40]}` waits for approval. Waiting: {', '.join(waiting) or 'none'}.")
        kept = {name: waiting[plan][name] for name in (*_ASKED, "plan") if name in waiting[plan]}
        self.add(decision="approved" if approve else "denied", id=plan, actor=f"human:{by}", **kept)
        return str(waiting[plan].get("plan", ""))

    def reset(self, by: str) -> int:
        """Closes the breaker; returns how many failures there were in a row. Raises OSError as `add` does."""
        count = self.failures()
        self.add(decision="reset", actor=f"human:{by}", failures=count)
        return count

    def is_stopped(self) -> bool:
        """Returns whether the kill switch is on: nothing is done then, and what is under way ends."""
        return bool(os.environ.get(STOP_VARIABLE)) or self._switch.exists()

    def stop(self, by: str) -> None:
        """Turns the kill switch on. Raises OSError if its file cannot be made."""
        private_files.make_folders(self.directory)
        self._switch.touch()
        with contextlib.suppress(OSError):  # The switch holds without its line in the record, too.
            self.add(decision="stopped", actor=f"human:{by}")

    def resume(self, by: str) -> bool:
        """Turns the kill switch off; returns whether it is off now, for the environment variable may hold it on.

        Raises OSError if the record cannot be written; it stays on then.
        """
        if self._switch.exists():
            self.add(decision="resumed", actor=f"human:{by}")
        self._switch.unlink(missing_ok=True)
        return not self.is_stopped()


def plain(value: Any) -> Any:
    """Returns a value for the record: bounded texts, without control characters and what looks like a secret."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items() if each is not None}
    return _SECRET.sub(r"\1\2***", _CONTROL.sub(" ", value))[:MOST_TEXT] if isinstance(value, str) else value
