"""Readers of jaxobs, each with a command that reads one file, answer or body from outside, and its worst shapes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jaxobs.ops.diagnosis import Inputs, bundles
from jaxobs.ops.diagnosis.gathering import bounded
from jaxobs.reasons import cache_records
from tools.fuzzing import shapes
from tools.fuzzing.answers import Server
from tools.fuzzing.incidents import LOG, METRICS, PROMETHEUS
from tools.fuzzing.originals import SITE_TOML, SITE_YAML, Originals
from tools.fuzzing.shapes import ANY, FEW, Shape

FILE, FOLDER, URL, PORT = "{file}", "{folder}", "{url}", "{port}"
_PROGRAM = "import jax, jax.numpy as jnp\njax.jit(lambda x: x * 2)(jnp.ones(3))\n"
TOKEN = "a-token-of-the-fuzzer"
_ENDED = (0, -15)
"""Exit codes of a server that was told to end."""
_TEST = "import pytest\n\n@pytest.mark.jaxobs_baseline\ndef test_small():\n    import small\n"
_DUMP = "module_0001.jit_step.cpu_after_optimizations.txt"
_REPORT = "20260131-090500-train-1a2b3c"


@dataclass(frozen=True)
class Reader:
    """A command that reads, and what it is given."""

    name: str
    what: str
    """Name of the thing that is attacked, for the table."""
    file: str
    """Path in the folder of what is attacked."""
    command: tuple[str, ...]
    """Arguments of Python, with `{file}`, `{folder}`, `{url}` and `{port}`."""
    shapes: Mapping[str, Shape]
    valid: bytes = b"{}\n"
    environment: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, bytes] = field(default_factory=dict)
    """Answers of a server by a part of the path."""
    asked: str = ""
    """The part of the path whose answer is the file; empty where nothing is asked."""
    posted: str = ""
    """The path of the command's own server to which the file is sent; empty where it is none."""
    module: str = ""
    """Module that takes it from a socket: accepting is not noted."""
    body: bytes | None = None
    """Bytes that are sent if it is not the file: nothing, and then it is only asked, if empty."""
    codes: tuple[int, ...] = (0, 1, 2)
    """Exit codes that are allowed."""
    stdin: str = ""
    """The file that is the standard input."""


def every(folder: Path, originals: Originals) -> Iterator[Reader]:
    """Yields the readers; files that they read next to the attacked one are made in the folder."""
    for name in ("cache", "log", "repository", "reports/state", "run/jaxobs", "trace", "a", "b"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "run" / "jaxobs").chmod(0o700)
    programs = originals.folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / ".git").write_text(f"gitdir: {folder}/repository")
    (programs / "small.py").write_text(_PROGRAM)
    (programs / "test_small.py").write_text(_TEST)
    for name in "ab":
        (folder / name / _DUMP).write_text("HloModule jit_step\n")
    (folder / "plain.jsonl").write_bytes(originals.files["events.jsonl"])
    (folder / "trace" / "t.xplane.pb").write_bytes(originals.files["trace.xplane.pb"])
    (folder / "token").write_text(TOKEN)
    (folder / "calls.jsonl").write_text(_rpc("get_incident", {"id": _REPORT}))
    shutil.copy(originals.entries[0], folder / "cache")
    yield from _logs(originals)
    yield from _incidents(folder, originals)
    yield from _given(originals)
    yield from _programs(originals)
    yield from _answers(originals)
    yield from _agent()


def _jaxobs(*words: str) -> tuple[str, ...]:
    return ("-m", "jaxobs", *words)


def _logs(originals: Originals) -> Iterator[Reader]:
    kinds, log = FEW | shapes.EVENTS | shapes.events_of(originals), originals.files["events.jsonl"]
    for name, words in {
        "explain": ("explain", FILE), "report": ("report", "--out", f"{FOLDER}/report.html", FILE),
        "compare": ("compare", f"{FOLDER}/plain.jsonl", FILE), "cache warm": ("cache", "warm", "--dry-run", FILE),
        "profile": ("profile", FILE), "diagnose --event-log": ("diagnose", "--event-log", FILE),
        "cache inspect --event-log": ("cache", "inspect", f"{FOLDER}/cache", "--event-log", FILE),
    }.items():  # fmt: skip
        yield Reader(name, "event log", "events.jsonl", _jaxobs(*words), kinds, log)
    yield Reader("bundle --event-log", "event log", "events.jsonl", _packing("--event-log", FILE), kinds, log)
    verify = ("cache", "verify", "--quiet", "--", "sh", "-c")
    copied = _jaxobs(*verify, f'cp {FILE} "$_JAXOBS_VERIFY_FOLDER/1.jsonl"')
    yield Reader("cache verify", "what the command's processes noted", "events.jsonl", copied, kinds, log)
    said = _jaxobs(*verify, f"cat {FILE}; exit 1")
    yield Reader("cache verify --quiet", "what the command printed", "output.txt", said, FEW, b"hello\n")


def _packing(*words: str) -> tuple[str, ...]:
    return _jaxobs("bundle", *words, "-o", f"{FOLDER}/made.tar.gz")


def _incidents(folder: Path, originals: Originals) -> Iterator[Reader]:
    logs, metrics = ANY | shapes.LOGS, ANY | shapes.METRICS
    for command, take in (("diagnose", _jaxobs), ("bundle", _packing)):
        words = ("diagnose",) if command == "diagnose" else ()
        yield Reader(f"{command} --log", "log", "worker.log", take(*words, "--log", FILE), logs, LOG.encode())
        yield Reader(
            f"{command} --metrics-file", "metrics in text", "m.prom", take(*words, "--metrics-file", FILE), metrics,
            METRICS.encode(),
        )  # fmt: skip
    opened = _jaxobs("diagnose", "--bundle", FILE)
    yield Reader("diagnose --bundle", "archive", "b.tar.gz", opened, ANY | shapes.ARCHIVES, _bundle(folder, originals))


def _bundle(folder: Path, originals: Originals) -> bytes:
    """Returns a bundle with a log that is too long for a whole copy, an event log and answers."""
    (folder / "long.log").write_bytes(LOG.encode() * (2 * bounded.MOST_BYTES // len(LOG)))
    with Server(_of_process(originals)) as server:
        inputs = Inputs(
            logs=(str(folder / "long.log"),), event_logs=(str(folder / "plain.jsonl"),), targets=(server.url,)
        )
        return Path(bundles.write(inputs, str(folder / "whole.tar.gz")).path).read_bytes()


def _given(originals: Originals) -> Iterator[Reader]:
    trace = originals.files["trace.xplane.pb"]
    yield Reader("profile trace", "trace", "t.xplane.pb", _jaxobs("profile", FILE), ANY | shapes.TRACES, trace)
    host = json.dumps({"spans": {"input_wait": [[1.0, 2.0]], "step": [[1.0, 2.0]]}}).encode()
    beside = _jaxobs("profile", f"{FOLDER}/trace/t.xplane.pb")
    spans = {"spans": shapes.repeated(b"[1.0,2.0],", b'{"spans":{"step":[', b"[1,2]]}}")}
    yield Reader("profile record", "spans next to a trace", "trace/jaxobs-host.json", beside, FEW | spans, host)
    entry = originals.entries[0]
    inspect = ("cache", "inspect", f"{FOLDER}/cache")
    yield Reader(
        "cache inspect", "entry of a cache", f"cache/{entry.name}", _jaxobs(*inspect), FEW | shapes.ENTRIES,
        entry.read_bytes(),
    )  # fmt: skip
    read_at = f"cache/{entry.name.removesuffix('-cache')}-atime"
    yield Reader(
        "cache inspect, times", "time of a read", read_at, _jaxobs(*inspect), FEW, (10**18).to_bytes(8, "little")
    )
    keys = cache_records.FILE
    records = FEW | shapes.records(originals, keys)
    yield Reader(
        "cache inspect keys", "keys next to a log", f"log/{keys}", _jaxobs(*inspect, "--event-log", f"{FOLDER}/log"),
        records, originals.files[keys],
    )  # fmt: skip
    yield Reader("doctor --baseline", "its own output", "doctor.json", _jaxobs("doctor", "--baseline", FILE), FEW)
    compared = _jaxobs("doctor", "--xla-dump", f"{FOLDER}/a", f"{FOLDER}/b")
    yield Reader("doctor --xla-dump", "dump of XLA", f"a/{_DUMP}", compared, FEW, b"HloModule jit_step\n")
    dumps = _jaxobs("compare", f"{FOLDER}/a", f"{FOLDER}/b", "--json")
    yield Reader("compare of dumps", "dump of XLA", f"a/{_DUMP}", dumps, FEW, b"HloModule jit_step\n}\n")
    flags = {"XLA_FLAGS": FILE}
    yield Reader("doctor", "file that XLA_FLAGS names", "flags.txt", _jaxobs("doctor"), FEW, b"\n", flags)
    for kind, name, words, valid in (
        ("--site", "site.toml", ("alerts",), SITE_TOML), ("--site", "site.yaml", ("alerts",), SITE_YAML),
        ("--slos", "slos.yaml", ("alerts",), ""),
    ):  # fmt: skip
        made = _jaxobs("generate", *words, "--out", f"{FOLDER}/out", kind, FILE)
        yield Reader(f"generate {kind} {name}", "settings of a site", name, made, FEW, valid.encode())
    policy = _jaxobs("mcp", "--reports", f"{FOLDER}/reports", "--actions", FILE)
    yield Reader("mcp --actions", "policy", "policy.toml", policy, FEW)
    token = _jaxobs("mcp", "--http", f"127.0.0.1:{PORT}", "--token-file", FILE)
    yield Reader(
        "--token-file", "token", "token.txt", token, FEW, TOKEN.encode(), posted="healthz", body=b"", codes=(*_ENDED, 2)
    )
    tests = (
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--jaxobs-baseline",
        FILE,
        f"{FOLDER}/../programs/test_small.py",
    )
    yield Reader("pytest --jaxobs-baseline", "what tests compiled", "baseline.json", tests, FEW, codes=(0, 1, 4))


def _programs(originals: Originals) -> Iterator[Reader]:
    run = _jaxobs("run", "--port", "0", f"{FOLDER}/../programs/small.py")
    keys = cache_records.FILE
    logged = {"JAXOBS_EVENT_LOG": f"{FOLDER}/log/run.jsonl", "JAXOBS_RUN_ID": "fuzz"}
    cached = {"JAX_COMPILATION_CACHE_DIR": f"{FOLDER}/cache", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    yield Reader(
        "run, keys", "keys next to the log", f"log/{keys}", run, FEW | shapes.records(originals, keys),
        originals.files[keys], cached | logged,
    )  # fmt: skip
    yield Reader(
        "run, attempts", "attempts of a run before", "log/jaxobs-run-fuzz.json", run, FEW, originals.files["run.json"],
        logged,
    )  # fmt: skip
    yield Reader(
        "run, event log", "event log that is there", "log/run.jsonl", run, FEW, originals.files["events.jsonl"], logged
    )
    yield Reader("run, commit", "head of a repository", "repository/HEAD", run, FEW, b"ref: a\n")
    found = {"XDG_RUNTIME_DIR": f"{FOLDER}/run"}
    yield Reader("top", "file of an endpoint", "run/jaxobs/1-2.json", _jaxobs("top", "--once"), FEW, b"{}", found)
    listening = _jaxobs("run", "--port", PORT, f"{FOLDER}/../programs/small.py")
    secure = {"JAXOBS_TLS_CERTIFICATE": FILE, "JAXOBS_TLS_KEY": FILE}
    yield Reader("run, certificate", "certificate of the endpoint", "c.pem", listening, FEW, b"\n", secure)
    acted = {"JAXOBS_ACTIONS": "1", "JAXOBS_ACTION_TOKEN": TOKEN, "JAXOBS_REQUEST_TIMEOUT": "5"}
    served = "import jaxobs, threading\njaxobs.start(port={port})\nthreading.Event().wait()\n"
    yield Reader(
        "endpoint", "body of a request", "body.json", ("-c", served), FEW, b'{"steps": 1}', acted,
        posted="api/v1/actions/profile", codes=_ENDED, module="jaxobs/web/connections.py",
    )  # fmt: skip


def _of_process(originals: Originals) -> dict[str, bytes]:
    files = originals.files
    return {"/snapshot": files["snapshot.json"], "/events": files["events.json"], "/metrics": METRICS.encode()}


def _answers(originals: Originals) -> Iterator[Reader]:
    of_processes = _of_process(originals)
    own = {part: body for part, body in of_processes.items() if part != "/metrics"}
    for name, words in {
        "explain URL": ("explain", URL), "top URL": ("top", "--once", URL),
        "diagnose --target": ("diagnose", "--target", URL),
    }.items():  # fmt: skip
        for part in of_processes if "target" in name else own:
            more = shapes.METRICS if part == "/metrics" else shapes.fields(own[part])
            yield Reader(
                f"{name} {part}", "answer of a process", f"answer{part}", _jaxobs(*words), FEW | more,
                of_processes[part], answers=of_processes, asked=part,
            )  # fmt: skip
    yield Reader(
        "profile URL", "answer to a capture", "capture.json", _jaxobs("profile", URL), FEW, b'{"result": "failed"}',
        {"JAXOBS_ACTION_TOKEN": TOKEN}, answers=own, asked="/actions/",
    )  # fmt: skip
    server = {f"/api/v1/{name}": json.dumps(body).encode() for name, body in PROMETHEUS.items()}
    server["/api/v1/query"] = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
    for name, command in (
        ("diagnose --prometheus", _jaxobs("diagnose", "--prometheus", URL)),
        ("bundle --prometheus", _packing("--prometheus", URL)),
    ):
        for part in ("/api/v1/alerts", "/api/v1/query_range"):
            yield Reader(
                f"{name} {part}", "answer of Prometheus", f"answer{part.replace('/', '-')}", command,
                FEW | shapes.fields(server[part]), server[part], answers=server, asked=part,
            )  # fmt: skip


def _agent() -> Iterator[Reader]:
    agent = ("agent", "--reports", f"{FOLDER}/reports", "--prometheus", "http://127.0.0.1:1")
    serving = _jaxobs(*agent, "--listen", f"127.0.0.1:{PORT}")
    labels = {"alertname": "JaxStraggler", "severity": "critical"}
    webhook = {
        "version": "4", "groupKey": "a", "status": "firing", "receiver": "agent", "groupLabels": {}, "commonLabels": {},
        "commonAnnotations": {}, "externalURL": "",
        "alerts": [{"status": "firing", "labels": labels, "annotations": {},
                    "startsAt": "2026-01-31T08:00:00Z", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "a"}],
    }  # fmt: skip
    valid = json.dumps(webhook).encode()
    yield Reader(
        "agent, webhook", "body of a webhook", "webhook.json", serving, FEW | shapes.fields(valid), valid,
        posted="webhook", codes=_ENDED, module="jaxobs/ops/agent/serving.py",
    )  # fmt: skip
    yield Reader(
        "agent, incident", "state of an incident", f"reports/state/{_REPORT}.json", serving, FEW,
        posted="healthz", body=b"", codes=_ENDED,
    )  # fmt: skip
    yield Reader(
        "agent, answer", "answer to a notification", "answer.txt",
        _jaxobs(*agent, "--listen", f"127.0.0.1:{PORT}", "--notify", URL), {"one line": FEW["one line"]}, b"ok",
        asked="/", posted="webhook", body=valid, codes=_ENDED, module="jaxobs/ops/agent/serving.py",
    )  # fmt: skip
    named = ("--reports", f"{FOLDER}/reports")
    for words in (("summary",), ("postmortem", _REPORT)):
        read = _jaxobs("agent", *words, *named)
        yield Reader(f"agent {words[0]}", "report", f"reports/{_REPORT}.json", read, FEW)
    acts = FEW | {"plans": shapes.numbered(b'{"at": 1e9, "decision": "approval_wanted", "id": "@", "action": "@"}\n')}
    waiting = _jaxobs("agent", "waiting", *named)
    yield Reader("agent waiting", "record of actions", "reports/actions.jsonl", waiting, acts)
    incident = _jaxobs("mcp", *named)
    yield Reader("mcp, incident", "report", f"reports/{_REPORT}.json", incident, FEW, stdin=f"{FOLDER}/calls.jsonl")
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":['
    lines = FEW | {"lists": shapes.repeated(b'{"a":{}},', ping, b"1]}\n")}
    calls = _rpc("list_incidents", {}).encode()
    yield Reader("mcp", "requests on standard input", "rpc.jsonl", _jaxobs("mcp", *named), lines, calls, stdin=FILE,
                 module="jaxobs/ops/assistants/serving.py")  # fmt: skip
    yield Reader(
        "mcp --http", "requests over HTTP", "rpc.json",
        _jaxobs("mcp", *named, "--http", f"127.0.0.1:{PORT}", "--token-file", f"{FOLDER}/token"), lines, b"{}",
        posted="mcp", codes=_ENDED, module="jaxobs/ops/assistants/serving.py",
    )  # fmt: skip


def _rpc(tool: str, arguments: Mapping[str, str]) -> str:
    """Returns what an assistant sends to call a tool."""
    client = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ]
    return "".join(json.dumps(each) + "\n" for each in calls)
