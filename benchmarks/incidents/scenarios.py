"""The scenarios: read from the files of their families, and laid out as the inputs of a diagnosis."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import json
import os
import re
import socketserver
import threading
import tomllib
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxobs.ops.diagnosis import Inputs

OPEN = Path(__file__).with_name("open_incidents.txt")
"""Incidents that count for first tries and are not replayed: those still wrong, and those that say what others say."""
FOLDER = Path(__file__).parent / "scenarios"
KINDS = ("single", "double", "remote", "distractor", "gap", "control")
"""A fault; two faults; the cause on another process than the symptom; something louder beside it; telemetry that is
missing; a healthy job."""
EPOCH = 1_769_850_000.0
"""Time at which the recorded sources end, 31 January 2026: also the files' own time, for times without a year."""

_NAME = re.compile(r"^\+\+\+ (\w+)\n", re.MULTILINE)
_SECTION = re.compile(r"^=== (log|event-log|metrics-file|prometheus|target) (\S+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Incident with its truth and its sources."""

    family: str
    name: str
    kind: str
    expect: str
    """The right verdict."""
    causes: tuple[str, ...]
    """The right causes, the one that started it first."""
    component: str | None
    """Component in which it began, if the sources show that."""
    onset: float | None
    """Time at which it began, in seconds since the epoch; None if the sources have no clock, or leave it open."""
    victims: tuple[str, ...]
    after: str | None
    """The public thread that it was made after: `jax-ml/jax#22070`."""
    truth: str
    """Sentence on what was the matter, according to the maintainers of that thread or to who made the fault."""
    cure: str
    """Sentence on what solves it; empty if nobody knows."""
    held_out: bool
    """True if it was written after the diagnoses, which were not changed before the first try."""
    round: int | None
    """Round of a scenario that was held out. Between two rounds the diagnoses were changed."""
    first_try: str | None
    """For one that was held out: what `diagnose` said at first, `right` or what was wrong."""
    judged: tuple[str, ...]
    """Judgements of a reader who knew the truth: before the changes of its round, and after those of them that somebody
    made who had not read it. `likely right solved` is one: the verdict, whether the cause was right, and whether the
    fix would have solved it."""
    sections: tuple[tuple[str, str, str], ...]
    """Kind, name and text of each source."""

    @property
    def is_control(self) -> bool:
        """Whether nothing is wrong."""
        return self.expect == "no_fault"


def scenarios() -> list[Scenario]:
    """Returns the scenarios of every family, by family and name."""
    return [scenario for path in sorted(FOLDER.glob("*.txt")) for scenario in family(path)]


def open_incidents() -> list[Scenario]:
    """Returns the incidents that are not replayed."""
    return family(OPEN)


def family(path: Path) -> list[Scenario]:
    """Returns the scenarios of one file, by name; their texts are byte for byte what the file has.

    Raises:
      ValueError: a scenario has no name, shares its name with another, or its head is not as it has to be.
    """
    before, *parts = _NAME.split(path.read_bytes().decode("utf-8"))
    if before:
        raise ValueError(f"{path}: a scenario begins with a line `+++ its_name`, not with {before[:40]!r}")
    found = [_read(path, name, text) for name, text in zip(parts[::2], parts[1::2], strict=True)]
    if len({scenario.name for scenario in found}) < len(found):
        raise ValueError(f"{path}: two scenarios have one name")
    return sorted(found, key=lambda scenario: scenario.name)


def _read(path: Path, name: str, text: str) -> Scenario:
    head, end, body = text.partition("+++\n")
    told: dict[str, Any] = tomllib.loads(head)
    parts = _SECTION.split(body)[1:]
    sections = tuple((kind, name, text) for kind, name, text in zip(*[iter(parts)] * 3, strict=True))
    causes = told.pop("causes", [])
    onset = told.pop("onset", None)
    found = Scenario(
        family=path.stem, name=name, kind=told.pop("kind"), expect=told.pop("expect"),
        causes=tuple(causes), component=told.pop("component", None),
        onset=None if onset is None else moment(onset), victims=tuple(told.pop("victims", ())),
        after=told.pop("after", None), truth=told.pop("truth"), cure=told.pop("cure", ""), held_out="first_try" in told,
        round=told.pop("round", None), first_try=told.pop("first_try", None),
        judged=tuple(told.pop("judged", ())), sections=sections,
    )  # fmt: skip
    if found.held_out != (found.round is not None):
        raise ValueError(f"{path}: {name}: `round` and `first_try` belong together")
    if told or not end or found.kind not in KINDS or (found.expect == "cause") != bool(causes):
        raise ValueError(f"{path}: {name}: its head is not as it has to be: {sorted(told)}")
    return found


def moment(text: str) -> float:
    """A time as RFC 3339 writes it, in seconds since the epoch."""
    found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if found.tzinfo is None:
        raise ValueError(f"{text} has no zone")
    return found.timestamp()


@contextlib.contextmanager
def laid_out(scenario: Scenario, folder: Path) -> Iterator[Inputs]:
    paths: dict[str, list[str]] = {"log": [], "event-log": [], "metrics-file": [], "prometheus": [], "target": []}
    with contextlib.ExitStack() as stack:
        for kind, name, text in scenario.sections:
            if kind in ("prometheus", "target"):
                paths[kind].append(stack.enter_context(_answering(text)))
                continue
            path = folder / name
            path.write_text(expanded(text), encoding="utf-8")
            os.utime(path, (EPOCH, EPOCH))
            paths[kind].append(str(path))
        yield Inputs(
            logs=tuple(paths["log"]), event_logs=tuple(paths["event-log"]), metrics_files=tuple(paths["metrics-file"]),
            prometheus=tuple(paths["prometheus"]), targets=tuple(paths["target"]),
        )  # fmt: skip


_REPEAT = re.compile(r"^@@ (\d+) times: (.*)\n", re.MULTILINE)


def expanded(text: str) -> str:
    """`@@ 1000 times: LINE` stands for a megabyte line or a thousand lines; `{n}` is the number."""
    return _REPEAT.sub(
        lambda found: "".join(found.group(2).replace("{n}", str(n)) + "\n" for n in range(int(found.group(1)))), text
    )


class _Server(socketserver.ThreadingTCPServer):
    """Without the look-up of its own name that an HTTP server makes."""

    daemon_threads = True


@contextlib.contextmanager
def _answering(text: str) -> Iterator[str]:
    """A server with recorded answers by path, of queries by their metric; `gone` is an address where nobody answers."""
    if text.strip() == "gone":
        yield "http://127.0.0.1:9"
        return
    answers: dict[str, Any] = json.loads(text)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            query = urllib.parse.parse_qs(parts.query).get("query", [""])[0]
            nothing = {"status": "success", "data": {"alerts": [], "resultType": "matrix", "result": []}}
            empty = {"events": [], "next": 0} if parts.path == "/api/v1/events" else nothing
            body = answers.get(f"{parts.path}?{query}" if query else self.path, empty)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
