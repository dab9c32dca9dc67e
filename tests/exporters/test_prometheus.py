"""A real Prometheus scrapes a real training process, and what it stores equals what the process did."""

import gzip
import http.server
import json
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import PROGRAMS
from helpers.requirements import program
from helpers.waiting import until
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as text_format

from jaxobs.base.config import Settings
from jaxobs.exporters.forms.exposition import MOST_SERIES, OPENMETRICS, TEXT, Renderer
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.wall import TIME_CATEGORIES
from jaxobs.state.store import Store

PROGRAM = PROGRAMS / "known_training.py"
WITHIN = 30.0
"""Seconds in which a scrape must have brought the newest state."""
MOST_BUSY_SERIES = 500

CONFIG = """
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: openmetrics
    static_configs: [{{targets: ["{direct}"]}}]
  - job_name: text
    static_configs: [{{targets: ["{proxied}"]}}]
"""


@dataclass
class Training:
    """The process, and the truth it told at its first stop."""

    process: subprocess.Popen[str]
    url: str
    truths: list[dict[str, Any]] = field(default_factory=list)

    def listen(self) -> dict[str, Any]:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the training process ended early"
        return dict(json.loads(line))

    def go_on(self) -> None:
        """Lets it go on from where it waits."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def get(self, **headers: str) -> tuple[bytes, Any]:
        """Body and headers of its metrics."""
        request = urllib.request.Request(
            self.url + "metrics", headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.read(), response.headers


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """A training process that waits at its first stop."""
    errors = (tmp_path_factory.mktemp("training") / "stderr.txt").open("w+")
    process = subprocess.Popen(
        [sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        errors.seek(0)
        assert first, errors.read()
        started = Training(process, json.loads(first)["url"])
        started.truths.append(started.listen())
        yield started
    finally:
        process.kill()
        process.communicate()
        errors.close()


class TextOnly(http.server.BaseHTTPRequestHandler):
    """Hands a scrape on as one that asks for the text format, as a Prometheus before OpenMetrics did."""

    upstream = ""
    seen: list[tuple[str, str]]

    def do_GET(self) -> None:
        """Asks for the same with another `Accept`, and notes how the answer came."""
        headers = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": self.headers.get("Accept-Encoding", "")}
        with urllib.request.urlopen(urllib.request.Request(self.upstream, headers=headers), timeout=120) as response:
            body = response.read()
            self.seen.append((response.headers["Content-Type"], response.headers.get("Content-Encoding", "")))
            self.send_response(200)
            for name in ("Content-Type", "Content-Encoding", "Content-Length"):
                if name in response.headers:
                    self.send_header(name, response.headers[name])
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def proxy(training: Training) -> Iterator[http.server.ThreadingHTTPServer]:
    """An endpoint that only speaks the text format."""
    handler = type("Handler", (TextOnly,), {"upstream": training.url + "metrics", "seen": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


class Prometheus:
    """A Prometheus of Debian's, asked through its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector of an expression."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=120) as response:
            return list(json.load(response)["data"]["result"])

    def by(self, expression: str, *labels: str) -> dict[Any, float]:
        """Values by one or more labels, summed."""
        found: dict[Any, float] = {}
        for row in self.query(f"sum by ({', '.join(labels)}) ({expression})"):
            key = tuple(row["metric"].get(label, "") for label in labels)
            found[key if len(labels) > 1 else key[0]] = float(row["value"][1])
        return found


@pytest.fixture(scope="module")
def prometheus(
    training: Training, proxy: http.server.ThreadingHTTPServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Debian's Prometheus, scraping each second: directly (OpenMetrics) and through the proxy (text)."""
    binary = program("prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    direct = urllib.parse.urlsplit(training.url).netloc
    (folder / "prometheus.yml").write_text(CONFIG.format(direct=direct, proxied=f"127.0.0.1:{proxy.server_port}"))
    # Port 0 is not told anywhere but in the log.
    command = [binary, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen([*command, "--web.listen-address=127.0.0.1:0"], stderr=log, stdout=log)
    try:
        address = f"http://{listening_address(process, folder / 'log.txt')}"
        until(lambda: ready(address), lambda: f"Prometheus is not ready:\n{(folder / 'log.txt').read_text()[-2000:]}")
        yield Prometheus(address)
    finally:
        process.terminate()
        process.wait(120)


def ready(address: str) -> bool:
    """Returns whether Prometheus answers queries: for a while after it listens it does not."""
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=120) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def listening_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Returns the address that Prometheus listens on, read from its own log."""
    end = time.monotonic() + WITHIN
    while time.monotonic() < end and process.poll() is None:
        for line in log.read_text().splitlines():
            if "Listening on" in line and "address=" in line:
                return line.partition("address=")[2].split()[0]
        time.sleep(0.1)
    raise AssertionError(f"Prometheus did not start:\n{log.read_text()[-2000:]}")


def stored(prometheus: Prometheus, job: str) -> dict[str, Any]:
    """Returns what Prometheus holds now, in the shape of the process's truth."""
    compilations = prometheus.by(f'jax_compilations_total{{job="{job}"}}', "function", "cause")
    causes: dict[str, dict[str, int]] = {}
    for (function, cause), count in compilations.items():
        causes.setdefault(function.removeprefix("__main__."), {})[cause] = int(count)
    eager = causes.pop("<eager>", {})
    calls = prometheus.by(f'jax_function_calls_total{{job="{job}"}}', "function")
    errors = prometheus.by(f'jax_function_errors_total{{job="{job}"}}', "error")
    return {
        "causes": causes,
        "executables": sum(sum(each.values()) for each in causes.values()) + sum(eager.values()),
        "calls": {name.removeprefix("__main__."): int(count) for name, count in calls.items()},
        "errors": {name: int(count) for name, count in errors.items()},
        "live_bytes": {n: int(v) for n, v in prometheus.by(f'jax_live_array_bytes{{job="{job}"}}', "device").items()},
        "live_arrays": {n: int(v) for n, v in prometheus.by(f'jax_live_arrays{{job="{job}"}}', "device").items()},
    }


def expected(truth: dict[str, Any]) -> dict[str, Any]:
    """The process's truth, with all executables as one number: eager operations have no names of their own."""
    return {**truth, "executables": sum(truth["executables"].values())}


def settled(prometheus: Prometheus, job: str, truth: dict[str, Any]) -> dict[str, Any]:
    """Returns what is stored, once it equals the truth or the time is over."""
    end = time.monotonic() + WITHIN
    while (found := stored(prometheus, job)) != expected(truth) and time.monotonic() < end:
        time.sleep(0.5)
    return found


def test_exposition_is_clean(training: Training) -> None:
    """`promtool check metrics` has nothing to say about the metrics of a process with some of everything."""
    end = time.monotonic() + WITHIN
    while b"jax_live_arrays{" not in (body := training.get(Accept="text/plain")[0]) and time.monotonic() < end:
        time.sleep(0.1)
    done = subprocess.run([program("promtool"), "check", "metrics"], input=body, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    families = {family.name for family in text_format(body.decode())}
    assert families >= {"jax_compilations", "jax_function_calls", "jax_function_dispatch_seconds", "jax_live_arrays"}


def test_formats_and_compression(training: Training) -> None:
    """Text and OpenMetrics hold the same samples; gzip is used when it is asked for, and only then."""
    plain, headers = training.get(Accept="text/plain;version=0.0.4")
    assert headers["Content-Type"] == TEXT
    assert "Content-Encoding" not in headers
    zipped, headers = training.get(Accept="application/openmetrics-text;version=1.0.0", Accept_Encoding="gzip")
    assert headers["Content-Type"] == OPENMETRICS
    assert headers["Content-Encoding"] == "gzip"
    assert len(zipped) < len(plain) / 4
    refused, headers = training.get(Accept_Encoding="gzip;q=0, identity")
    assert "Content-Encoding" not in headers
    assert refused.startswith(b"# HELP")

    def counted(families: Any) -> dict[tuple[str, Any], float]:
        samples = [sample for family in families for sample in family.samples]
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for sample in samples
            if sample.name.startswith("jax_") and not sample.name.endswith("_created")
        }

    def alike() -> bool:
        """Whether two scrapes agree: a sample of the sources may lie between them."""
        plain, _ = training.get(Accept="text/plain;version=0.0.4")
        zipped, _ = training.get(Accept="application/openmetrics-text;version=1.0.0", Accept_Encoding="gzip")
        sooner, later = counted(text_format(plain.decode())), counted(open_metrics(gzip.decompress(zipped).decode()))
        seconds = {key: sooner.pop(key) for key in list(sooner) if key[0] == "jax_time_seconds_total"}  # they go on
        assert len(seconds) == len(TIME_CATEGORIES) - 1, "nothing counts transfers"
        return all(seconds[key] <= later.pop(key) < seconds[key] + 60 for key in seconds) and later == sooner

    until(alike)


def test_busy_process_has_few_series(training: Training) -> None:
    """A training process with a loop, an evaluation and its devices stays below 500 series."""
    body, _ = training.get()
    series = [line for line in body.decode().splitlines() if not line.startswith("#")]
    assert 100 < len(series) < MOST_BUSY_SERIES


def test_stored_counts_are_true(training: Training, prometheus: Prometheus, proxy: Any) -> None:
    """Prometheus stored what the process did, in both formats, and again after it did more."""
    for job in ("openmetrics", "text"):
        assert settled(prometheus, job, training.truths[0]) == expected(training.truths[0]), job
    training.go_on()
    truth = training.listen()
    assert truth["calls"]["train_step"] > training.truths[0]["calls"]["train_step"]
    for job in ("openmetrics", "text"):
        assert settled(prometheus, job, truth) == expected(truth), job
    assert prometheus.by("up", "job") == {"openmetrics": 1, "text": 1}
    assert set(proxy.RequestHandlerClass.seen) == {(TEXT, "gzip")}
    targets = prometheus.query('jax_build_info{job="openmetrics"}')
    assert [each["metric"]["jax"] for each in targets] == [prometheus.query("jax_build_info")[0]["metric"]["jax"]]


# --------------------------------------------------------------------------------------------------- bounds


def series(store: Store, content_type: str) -> list[Any]:
    text = Renderer(store).render(content_type).decode()
    families = text_format(text) if content_type == TEXT else open_metrics(text)
    return [sample for family in families for sample in family.samples]


@pytest.mark.parametrize("content_type", [TEXT, OPENMETRICS], ids=["text", "openmetrics"])
def test_ten_thousand_functions(content_type: str) -> None:
    """10,000 functions with two causes each stay within 2,500 series, and no compilation is lost."""
    store = Store(Settings())
    for cause in ("first_call", "shape"):
        for number in range(10_000):
            phases = {"trace": 0.001, "lower": 0.002, "compile": 0.004}
            store.record(
                Compilation(time=time.time(), function=f"model.step_{number}", cause=cause, reason="", phases=phases)
            )
    samples = series(store, content_type)
    assert len(samples) <= MOST_SERIES == 2500
    compilations = [each for each in samples if each.name == "jax_compilations_total"]
    assert sum(each.value for each in compilations) == 20_000
    other = [each for each in compilations if each.labels["function"] == "<other>"]
    assert sum(each.value for each in other) == 20_000 - 2 * 200
    assert len({each.labels["function"] for each in compilations}) == 201
    dropped = {each.labels["reason"]: each.value for each in samples if each.name == "jaxobs_dropped_series_total"}
    assert dropped["max_functions"] > 0


@pytest.mark.slow
def test_many_real_functions() -> None:
    """A process that jits 120 functions with room for 20 counts all of them."""
    code = """
import collections, json
import jax, jaxobs
jaxobs.install(max_functions=20)
for number in range(120):
    space = {}
    exec(f"def step_{number}(x): return x + {number}", space)
    jax.jit(space[f"step_{number}"])(1.0)
found = {each.name.rpartition(".")[2]: each.compiled for each in jaxobs.snapshot().functions}
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = Counter(json.loads(done.stdout))
    found.pop("<eager>", None)
    assert found.pop("<other>") >= 100
    assert all(count == 1 for count in found.values())
    assert sum(json.loads(done.stdout).values()) >= 120
