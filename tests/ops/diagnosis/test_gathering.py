"""Sources as they come: huge, damaged, hostile, hanging, gone. Nothing read stops a diagnosis or is run."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import re
import socketserver
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.waiting import HANG_SECONDS

from benchmarks.incidents.scenarios import scenarios
from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.evidence import LINE, PROGRESS, Evidence
from jaxobs.ops.diagnosis.gathering import bounded, literals
from jaxobs.ops.diagnosis.gathering import http as bounded_http
from jaxobs.ops.diagnosis.gathering.log_lines import LogLine, parse
from jaxobs.ops.diagnosis.gathering.whose import process_of
from jaxobs.ops.diagnosis.knowledge import Line
from jaxobs.ops.diagnosis.known import known

DISK_FULL = "OSError: [Errno 28] No space left on device"
MOMENT = 1769850000.0  # 2026-01-31T09:00:00Z
LINES = Path(__file__).with_name("lines.toml")


def log(folder: Path, text: str | bytes, name: str = "train.log") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def look(*paths: str) -> Evidence:
    return gather(Inputs(logs=paths))


# --------------------------------------------------------------------------------------------------- lines of logs


@pytest.mark.parametrize(
    "case", tomllib.loads(LINES.read_text(encoding="utf-8"))["lines"], ids=lambda case: case["line"]
)
def test_a_line_is_understood(case: dict[str, Any]) -> None:
    """Time, level and process in the forms of loggers and launchers; the message without them."""
    parts = {name: value for name, value in case.items() if name not in ("line", "seconds")}
    moment = MOMENT + case["seconds"] if "seconds" in case else None
    assert parse(case["line"], 2026) == LogLine(time=moment, **parts)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("worker-3.log", "process 3"), ("rank_12.out", "process 12"), ("train.7.err", "process 7"),
        ("dmesg-host-4.log", "process 4"), ("train.log", ""), ("llama-70b.log", ""),
        ("slurm-48211.out", ""), ("slurm-48211_3.out", "process 3"),
    ],
)  # fmt: skip
def test_a_file_names_its_process(name: str, expected: str) -> None:
    assert process_of(f"/logs/{name}") == expected


def test_times_without_a_year_take_that_of_other_sources(tmp_path: Path) -> None:
    """glog has none: the year of what is dated decides, not that of today."""
    one = log(tmp_path, "E0131 09:00:05.000000  1 a.cc:1] another task died\n", "worker-0.log")
    other = log(tmp_path, f"2019-01-31 09:00:00,000 ERROR x\n{DISK_FULL}\n", "worker-1.log")
    found = diagnose(look(one, other))
    assert [each.id for each in found.causes] == ["disk_full"]
    assert found.causes[0].onset == "2019-01-31T09:00:00.000000Z"
    assert found.causes[0].victims == ("process 0",)


def test_what_came_later_is_no_cause(tmp_path: Path) -> None:
    """An exception minutes after a loss is another victim's."""
    one = log(tmp_path, "2026-01-31 09:00:00,000 ERROR x: another task died\n", "worker-0.log")
    other = log(tmp_path, f"2026-01-31 09:05:00,000 ERROR x\n{DISK_FULL}\n", "worker-1.log")
    assert "peer_lost" not in diagnose(look(one, other)).causes[0].consequences


def test_an_open_fence_hides_nothing(tmp_path: Path) -> None:
    """Otherwise three characters in a prompt would hide the rest of a log."""
    filler = "".join(f"line {number}\n" for number in range(100))
    for text in (f"```\n{filler}{DISK_FULL}\n", f"```\n{DISK_FULL}\n{filler}```\n"):
        assert [each.id for each in diagnose(look(log(tmp_path, text))).causes] == ["disk_full"]


# ---------------------------------------------------------------------------------------------- files that are trouble


def test_pipes_directories_and_missing_files_are_named(tmp_path: Path) -> None:
    """A FIFO that nobody writes would hold the command for ever."""
    os.mkfifo(tmp_path / "pipe")
    paths = [str(tmp_path / "pipe"), str(tmp_path), str(tmp_path / "gone"), "\0"]
    for inputs in (Inputs(logs=tuple(paths)), Inputs(event_logs=tuple(paths)), Inputs(metrics_files=tuple(paths))):
        evidence = gather(inputs)
        assert [each.problem is not None for each in evidence.sources] == [True] * len(paths)
        found = diagnose(evidence)
        assert found.verdict == "inconclusive"
        assert len(found.missing) == len(paths)


def test_a_huge_file_is_read_from_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", 10_000)
    filler = "2026-01-31 09:00:00,000 INFO x: nothing of interest\n" * 2_000
    path = log(tmp_path, f"{filler}{DISK_FULL}\n")
    evidence = look(path)
    assert [each.id for each in diagnose(evidence).causes] == ["disk_full"]
    assert "were left out" in evidence.sources[0].notes[0]
    assert not evidence.sources[0].is_whole
    places = [each.place for each in evidence.observations]
    assert places == sorted(places)


def test_a_flood_of_errors_is_bounded(tmp_path: Path) -> None:
    """The first ones of each kind are kept, for they tell when it began."""
    evidence = look(log(tmp_path, f"{DISK_FULL}\n" * 50_000))
    assert len(list(evidence.of_kind(LINE))) == 20
    assert diagnose(evidence).causes[0].evidence[0].place == 1


def test_long_and_foreign_lines(tmp_path: Path) -> None:
    """A line of megabytes, NULs, bytes that are no UTF-8, no line end: none is in the way of the next."""
    text = b"x" * 3_000_000 + b" Errno 28\n\x00\xff\xfe\x80\n" + b"\r".join([b"step 1", b"step 2"]) + b"\n"
    evidence = look(log(tmp_path, text + DISK_FULL.encode()))
    assert [each.id for each in diagnose(evidence).causes] == ["disk_full"]
    assert [each.value for each in evidence.of_kind(PROGRESS)] == [2.0]
    json.dumps(diagnose(evidence).as_json())


def test_reports_quote_one_bounded_line(tmp_path: Path) -> None:
    """No control characters, no escape sequences, no megabytes."""
    found = diagnose(look(log(tmp_path, f"{DISK_FULL}: \x1b[2J\x07\u202e{'x' * 5000}\n")))
    (quote,) = found.causes[0].evidence
    assert quote.text.isprintable()
    assert len(quote.text) <= 300


def test_patterns_take_no_time_on_lines_made_for_that(tmp_path: Path) -> None:
    """Each line of this would take minutes in an expression that backtracks."""
    lines = ["NCCL " * 800, "exit code " * 400, "a" * 4000 + ":", '"' * 4000, "gs://" * 800, "loss " * 800, "(" * 4000]
    start = time.process_time()
    look(log(tmp_path, "\n".join(lines * 3)))
    assert time.process_time() - start < 20


@pytest.mark.slow
def test_the_quick_look_misses_nothing() -> None:
    patterns = [sign.pattern for each in known().values() for sign in each.signs if isinstance(sign, Line)]
    lines = {line for each in scenarios() for _, _, text in each.sections for line in text.splitlines()}
    may_show = literals.gate(tuple(patterns))
    for number, pattern in enumerate(patterns):
        texts = literals.needed(pattern)
        assert texts, f"{pattern!r} has no text that can be looked for quickly"
        shown = [line for line in lines if re.search(pattern, line[:4096])]
        assert all(any(text in line for text in texts) for line in shown), pattern
        assert all(number in may_show(line) for line in shown)


def test_a_number_that_is_no_float_costs_its_line(tmp_path: Path) -> None:
    """The parser of metrics makes an integer of any size."""
    text = f'jax_steps_total{{loop="train"}} {10**400}\naccelerator_xid_errors_total{{xid="79"}} 1\n'
    found = diagnose(gather(Inputs(metrics_files=(log(tmp_path, text, "m.prom"),))))
    assert [each.id for each in found.causes] == ["gpu_hardware"]


def test_damaged_metrics_and_events_cost_their_lines(tmp_path: Path) -> None:
    text = 'broken{{{\naccelerator_xid_errors_total{xid="79"} 1\naccelerator_xid_errors_total{'
    metrics = log(tmp_path, text, "m.prom")
    found = diagnose(gather(Inputs(metrics_files=(metrics,))))
    assert [each.id for each in found.causes] == ["gpu_hardware"]
    assert any("damaged" in each for each in found.missing)
    body = {"time": "2026-01-31T09:00:00Z", "event": "nonfinite", "name": "loss", "what": "nan"}
    events = log(tmp_path, f"garbage\n{json.dumps(body)}\n{{'\n", "e.jsonl")
    assert [each.id for each in diagnose(gather(Inputs(event_logs=(events,)))).causes] == ["nonfinite_values"]


# -------------------------------------------------------------------------------------------------------------- servers


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextlib.contextmanager
def listening(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server with a handler; yields its address."""
    with Server(("127.0.0.1", 0), handler) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"127.0.0.1:{made.server_address[1]}"
        finally:
            made.shutdown()


@contextlib.contextmanager
def server(answer: bytes | None, pause: float = 0.0) -> Iterator[str]:
    """Answers every request with these bytes, one by one where it pauses; with None it never answers."""
    ended = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if answer is None:
                ended.wait(30)
                return
            with contextlib.suppress(OSError):
                self.send_response(200)
                self.end_headers()
                for part in [answer] if not pause else [answer[i : i + 1] for i in range(len(answer))]:
                    self.wfile.write(part)
                    self.wfile.flush()
                    if ended.wait(pause):
                        return

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with listening(Handler) as address:
        yield f"http://{address}"
        ended.set()


@pytest.mark.parametrize(
    ("answer", "pause", "timeout", "problem"),
    [
        (None, 0.0, 0.3, "no answer within"),
        (b"{" * 4000, 0.02, 2.0, "no whole answer within"),
        (b"<html>", 0.0, HANG_SECONDS, "not JSON"),
        (b'{"status": "error"}', 0.0, HANG_SECONDS, "not a Prometheus"),
        (b"x" * 200_000, 0.0, HANG_SECONDS, "larger than"),
    ],
)
def test_a_bad_prometheus_is_a_problem(
    answer: bytes | None, pause: float, timeout: float, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "MOST_BYTES", 100_000)
    with server(answer, pause) as url:
        found = diagnose(gather(Inputs(prometheus=(url,)), timeout=timeout))
    assert found.verdict == "inconclusive"
    assert problem in found.missing[0]


def test_a_target_that_hangs_is_a_problem() -> None:
    """As a stopped process does."""
    with server(None) as url:
        found = diagnose(gather(Inputs(targets=(url,)), timeout=0.3))
    assert found.verdict == "inconclusive"
    assert "no answer" in found.missing[0]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "prometheus", "http://", "http://[::1"])
def test_only_http_is_asked(url: str) -> None:
    """No other scheme, whoever gave it."""
    assert diagnose(gather(Inputs(prometheus=(url,)))).verdict == "inconclusive"


class Guarded(http.server.BaseHTTPRequestHandler):
    """A Prometheus that notes the headers of each request, and lets nobody in who shows nothing."""

    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        """Alerts, or a refusal."""
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        known = "authorization" in self.seen[-1] or "x-scope-orgid" in self.seen[-1]
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(b'{"status": "success", "data": {"alerts": [], "result": []}}')

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def guarded() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The host of such a Prometheus, and the headers that it saw."""
    seen: list[dict[str, str]] = []
    with listening(type("Handler", (Guarded,), {"seen": seen})) as address:
        yield address, seen


def test_a_prometheus_that_wants_credentials_gets_them(
    guarded: tuple[str, list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token, a user and password in its address, or a header; none of them is in what is reported."""
    host, seen = guarded
    refused = gather(Inputs(prometheus=(f"http://{host}",)))
    assert "wants credentials; set `JAXOBS_PROMETHEUS_TOKEN`" in str(refused.sources[0].problem)
    found = gather(Inputs(prometheus=(f"http://me:p%40ss@{host}/",)))
    assert found.sources[0].problem is None and found.sources[0].name == f"http://{host}/"
    assert seen[-1]["authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()
    monkeypatch.setenv("JAXOBS_PROMETHEUS_TOKEN", "open-sesame")
    assert gather(Inputs(prometheus=(f"http://{host}",))).sources[0].problem is None
    assert seen[-1]["authorization"] == "Bearer open-sesame"
    monkeypatch.delenv("JAXOBS_PROMETHEUS_TOKEN")
    monkeypatch.setenv("JAXOBS_PROMETHEUS_HEADERS", "X-Scope-OrgID: team-a\n\nX-Other:b\n")
    assert gather(Inputs(prometheus=(f"http://{host}",))).sources[0].problem is None
    assert (seen[-1]["x-scope-orgid"], seen[-1]["x-other"]) == ("team-a", "b") and "authorization" not in seen[-1]
    monkeypatch.setenv("JAXOBS_PROMETHEUS_HEADERS", "no header")
    wrong = gather(Inputs(prometheus=(f"http://{host}",))).sources[0].problem
    assert wrong is not None and "`JAXOBS_PROMETHEUS_HEADERS` holds a line that is not a header" in wrong


def test_a_network_does_not_see_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXOBS_PROMETHEUS_TOKEN", "open-sesame")
    for url, shown in (("http://prometheus:9090/a", False), ("https://prometheus/a", True), ("http://[::1]:1/a", True)):
        assert bounded_http.request(url).has_header("Authorization") is shown
    assert "HTTPS or loopback only" in bounded_http._refused(401, "http://prometheus:9090/a")
    assert bounded_http._refused(401, "https://prometheus/a") == ": it refuses the credentials"
    assert bounded_http._refused(500, "https://prometheus/a") == ""
    assert bounded_http.request("http://a:b@prometheus:9090/x?y").full_url == "http://prometheus:9090/x?y"
