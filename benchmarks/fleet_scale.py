"""A real Prometheus and so many made-up processes: what it takes to store them, to evaluate our rules, to draw.

python -m benchmarks.fleet_scale 10 100 1000 --markdown docs/scale.md
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gzip
import json
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.__main__ import machine
from benchmarks.made_up_process import MadeUpProcess
from jaxobs.exporters.forms.exposition import OPENMETRICS, Renderer
from jaxobs.ops.monitoring import alerting, boards, yaml_text
from jaxobs.ops.monitoring.site import Site
from tools import panel_data
from tools.ports import free_port

DEVICES, FUNCTIONS = 8, 50
IN_A_JOB = 100
HOUR = 3600.0
LOOK_EVERY = 10.0


@dataclass(frozen=True, kw_only=True)
class Size:
    """Resources that a Prometheus takes for so many processes."""

    processes: int
    series_each: int
    """Series of one process."""
    series: int
    """In memory, the recorded ones included."""
    samples_per_second: float
    cores: float
    """Share of a processor for scraping and rules."""
    resident_bytes: int
    bytes_per_sample: float
    """On disk, as a block: the more samples of a series, the less each takes."""
    scrape_interval: float
    scrape_seconds: float
    """The slowest scrape."""
    rules_seconds: float
    """All groups, one after the other, each as long as it usually took."""
    slowest_group: str
    slowest_group_seconds: float
    missed: int
    """Evaluations of groups that were left out, for the one before was not over."""
    failed: int
    down: int
    """Processes whose latest scrape failed."""
    seconds: float
    """How long it ran."""
    slowest_now: tuple[str, float]
    """The panel whose queries for one moment take longest."""
    slowest_hour: tuple[str, float]
    """The panel whose queries over an hour take longest."""
    errors: tuple[str, ...]
    """Errors that panels' queries were answered with instead of data."""


class Processes:
    """All of them behind one address: what one exports now, rendered by our exporter and compressed once a tick."""

    def __init__(self, functions: int, devices: int, tick: float) -> None:
        self._process = MadeUpProcess(functions=functions, devices=devices, start=time.time() - HOUR)
        self._renderer = Renderer(self._process)  # type: ignore[arg-type]
        self._lock = threading.Lock()
        self._tick, self._due, self._body = tick, 0.0, b""
        self.series = 0

    def body(self) -> bytes:
        """Returns the text that is served."""
        with self._lock:
            if time.monotonic() >= self._due:
                self._process.age = time.time() - self._process.start
                text = self._renderer.render(OPENMETRICS)
                self.series = sum(not line.startswith(b"#") for line in text.splitlines())
                self._body, self._due = gzip.compress(text, 1), time.monotonic() + self._tick
            return self._body

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        """Serves the text, and yields the processes' common address, host and port."""
        processes = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = processes.body()
                self.send_response(200)
                for name, value in (("Type", OPENMETRICS), ("Encoding", "gzip"), ("Length", str(len(body)))):
                    self.send_header(f"Content-{name}", value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 1024
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Prometheus hangs up when it ends."""

        server = Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


@contextlib.contextmanager
def prometheus(folder: Path, count: int, address: str, interval: float, rules_every: str = "") -> Iterator[str]:
    """A Prometheus with our rules that scrapes so many targets at one address; its own address."""
    groups = alerting.groups(Site())
    if rules_every:
        groups = [{**each, "interval": rules_every} for each in groups]
    (folder / "rules.yaml").write_text(yaml_text.dump({"groups": groups}, what="alerts"))
    targets = [
        {"targets": [f"host-{number:04d}:9464"], "labels": {"job": f"train-{number // IN_A_JOB}"}}
        for number in range(count)
    ]
    (folder / "targets.json").write_text(json.dumps(targets))
    relabel = [
        {"source_labels": ["__address__"], "target_label": "instance"},
        {"target_label": "__address__", "replacement": address},
    ]
    config = {
        "global": {"scrape_interval": f"{interval:g}s", "evaluation_interval": "1m"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": "processes", "sample_limit": 3000, "relabel_configs": relabel,
                "file_sd_configs": [{"files": [str(folder / "targets.json")]}],
            }
        ],
    }  # fmt: skip
    (folder / "prometheus.yml").write_text(json.dumps(config))
    listen = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                shutil.which("prometheus") or "prometheus", f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={listen}", "--web.enable-admin-api",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.wait()


class Own:
    """Returns what a Prometheus exports of itself, at one moment."""

    def __init__(self, url: str) -> None:
        with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        self._samples = [each for family in text_string_to_metric_families(text) for each in family.samples]

    def total(self, name: str) -> float:
        """The sum of a metric's series."""
        return sum(each.value for each in self._samples if each.name == name)

    def by(self, name: str, label: str) -> dict[str, float]:
        """A metric's values by one of its labels."""
        return {each.labels[label]: each.value for each in self._samples if each.name == name}


def measure(
    count: int, *, seconds: float, interval: float = 30.0, rules_every: str = "", functions: int = FUNCTIONS,
    devices: int = DEVICES,
) -> Size:  # fmt: skip
    """Runs so many processes for so long: two minutes at least, for the rules.

    Args:
      rules_every: evaluates all rules so often; by default as often as each says.

    Raises:
      OSError: there is no Prometheus here, or it ended early.
    """
    processes = Processes(functions, devices, interval / 2)
    folder = Path(tempfile.mkdtemp(prefix="jaxobs-fleet-"))
    try:
        with processes.served() as address, prometheus(folder, count, address, interval, rules_every) as url:
            _await(url)
            begun = time.monotonic()
            time.sleep(seconds * 0.4)  # all series are made by then
            before, since = Own(url), time.monotonic()
            looks: list[Own] = []
            while not looks or time.monotonic() < begun + seconds:
                time.sleep(min(LOOK_EVERY, max(0.0, begun + seconds - time.monotonic())))
                looks.append(Own(url))
            after, now = looks[-1], time.monotonic()
            up = panel_data.get(url, "query", query='up{job!="prometheus"}', time=time.time())["result"]
            scrapes = panel_data.get(url, "query", query="max(scrape_duration_seconds)", time=time.time())["result"]
            moment, hour, errors = _panels(url, interval)
            size, kept = _block(url, folder)
            every = [each.by("prometheus_rule_group_last_duration_seconds", "rule_group") for each in looks]
            groups = {name: statistics.median(each[name] for each in every) for name in every[-1]}
            slowest = max(groups, key=groups.__getitem__)
            appended = "prometheus_tsdb_head_samples_appended_total"
            busy = "process_cpu_seconds_total"
            return Size(
                processes=count, series_each=processes.series, series=int(after.total("prometheus_tsdb_head_series")),
                samples_per_second=(after.total(appended) - before.total(appended)) / (now - since),
                cores=(after.total(busy) - before.total(busy)) / (now - since),
                resident_bytes=int(after.total("process_resident_memory_bytes")),
                bytes_per_sample=size / kept, scrape_interval=interval,
                scrape_seconds=float(scrapes[0]["value"][1]), rules_seconds=sum(groups.values()),
                slowest_group=slowest.rpartition(";")[2], slowest_group_seconds=groups[slowest],
                missed=int(after.total("prometheus_rule_group_iterations_missed_total")),
                failed=int(after.total("prometheus_rule_evaluation_failures_total")),
                down=count - sum(each["value"][1] == "1" for each in up), seconds=now - begun,
                slowest_now=moment, slowest_hour=hour, errors=errors,
            )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(url: str) -> None:
    for attempt in range(200):
        try:
            urllib.request.urlopen(f"{url}/-/ready", timeout=1).close()
        except OSError:
            if attempt == 199:
                raise
            time.sleep(0.1)
        else:
            return


def _panels(url: str, interval: float) -> tuple[tuple[str, float], tuple[str, float], tuple[str, ...]]:
    """The slowest panel for one moment and over an hour in at most 240 steps, all targets chosen, and the errors."""
    now = time.time()
    span = panel_data.Span(now - HOUR, now, max(interval, HOUR / 240), f"{4 * interval:g}s")
    instant: dict[str, float] = {}
    ranged: dict[str, float] = {}
    errors = []
    for board in boards.boards():
        raw = panel_data.drawn(board)
        values = panel_data.variables(raw) | span.values()
        for panel in raw["panels"]:
            name = f"{board.name}: {panel['title']}"
            for target in panel.get("targets", ()):
                expr = panel_data.put_in(target["expr"], values)
                try:
                    started = time.perf_counter()
                    panel_data.get(url, "query", query=expr, time=now)
                    between = time.perf_counter()
                    if not target["instant"]:
                        panel_data.get(url, "query_range", query=expr, start=span.start, end=span.end, step=span.step)
                        ranged[name] = ranged.get(name, 0.0) + time.perf_counter() - between
                    instant[name] = instant.get(name, 0.0) + between - started
                except (ValueError, OSError) as error:
                    errors.append(f"{name}: {error}")
    return _most(instant), _most(ranged), tuple(errors)


def _most(seconds: dict[str, float]) -> tuple[str, float]:
    return max(seconds.items(), key=lambda each: each[1])


def _block(url: str, folder: Path) -> tuple[int, int]:
    """Returns the bytes of all that was stored, as a block on disk, and the number of samples."""
    request = urllib.request.Request(f"{url}/api/v1/admin/tsdb/snapshot", method="POST")
    with urllib.request.urlopen(request, timeout=300) as answer:
        name = json.load(answer)["data"]["name"]
    found = folder / "data" / "snapshots" / name
    size = sum(each.stat().st_size for each in found.rglob("*") if each.is_file())
    samples = sum(json.loads(each.read_text())["stats"]["numSamples"] for each in found.rglob("meta.json"))
    return size, samples


COLUMNS: dict[str, Callable[[Size], str]] = {
    "processes": lambda size: f"{size.processes}",
    "series": lambda size: f"{size.series:,}",
    "scraped every": lambda size: f"{size.scrape_interval:g} s",
    "samples/s": lambda size: f"{size.samples_per_second:,.0f}",
    "memory": lambda size: f"{size.resident_bytes / 1e9:.2f} GB",
    "cores": lambda size: f"{size.cores:.2f}",
    "disk a day": lambda size: f"{size.samples_per_second * size.bytes_per_sample * 86400 / 1e9:.1f} GB",
    "all rules": lambda size: f"{size.rules_seconds:.2f} s",
    "slowest group": lambda size: f"{size.slowest_group_seconds:.2f} s ({size.slowest_group})",
    "missed": lambda size: f"{size.missed}",
    "slowest panel now": lambda size: f"{size.slowest_now[1]:.2f} s ({size.slowest_now[0]})",
    "slowest panel, 1 h": lambda size: f"{size.slowest_hour[1]:.2f} s ({size.slowest_hour[0]})",
}


def table(sizes: list[Size]) -> str:
    """Figures as a Markdown table, a column for each size."""
    lines = []
    for number, (name, cell) in enumerate(COLUMNS.items()):
        lines.append(f"| {name} | {' | '.join(cell(each) for each in sizes)} |")
        if number == 0:
            lines.append(f"|---|{'---:|' * len(sizes)}")
    return "\n".join(lines)


def page(sizes: list[Size]) -> str:
    """The page for those who want to know what a Prometheus has to be like."""
    version = subprocess.run(["prometheus", "--version"], capture_output=True, text=True, check=True)
    told = (version.stdout or version.stderr).split(" (")[0].replace(", version", "")
    about = "".join(f"- {what}: {value}\n" for what, value in machine().items() if what != "jax")
    ran = ", ".join(f"{each.processes} for {each.seconds / 60:.1f} min" for each in sizes)
    trouble = "".join(
        f"- {each.processes} processes: {each.down} were down, {each.failed} evaluations failed, "
        f"{len(each.errors)} queries of panels gave an error.\n"
        for each in sizes
    )
    return _PAGE.format(
        table=table(sizes), about=f"{about}- prometheus: {told}\n", ran=ran, trouble=trouble, devices=DEVICES,
        functions=FUNCTIONS, stored=sizes[-1].bytes_per_sample, each=sizes[-1].series_each, in_a_job=IN_A_JOB,
    )  # fmt: skip


_PAGE = """\
<!-- Written by `python -m benchmarks.fleet_scale SIZES --markdown docs/scale.md`. Do not edit. -->
# How large a Prometheus you need

Measured with one real Prometheus, with all of jaxobs' recording and alerting rules, and simulated processes. Each has
{devices} devices and {functions} functions and exports {each} series, rendered by jaxobs' exporter with changing
values, in jobs of {in_a_job}.

{table}

- *Memory* is Prometheus' resident memory.
- *Disk a day* is the rate of samples times {stored:.1f} bytes, the size of a sample in a block with 240 samples of each
  series (two hours at 30 s).
- *All rules* is the total time of all groups, each with its typical time. The groups run in parallel, and each
  has a minute.
- *Missed* are evaluations that were skipped because the previous one was still running.
- A *panel*'s time is that of all its queries, with every process selected: for one moment, and, for a panel that shows
  a range, over an hour at a step of the scrape interval, as Grafana asks.

{trouble}
## What it was measured on

{about}
The simulation and other work ran on the same machine: read the times as upper bounds. It ran for a short time
({ran}).
In a Prometheus that has run for days, queries and rules that look further back find more samples and take longer.
Memory grows with series that come and go, as jobs start and end, and with the two to
three hours of data in the head. The first evaluation of the rules takes longer than the others, because it creates all
recorded series.

## For other sizes

Series, samples and memory grow with the number of processes, and so does the time of rules and panels that look at
all of them. For the number of series, multiply the processes by the series of each. For the samples a second, divide
that by the scrape interval. Beyond what one machine can hold, run one Prometheus for each cluster or group of jobs,
and write to a store that holds all of them: `jaxobs generate kubernetes` writes `deploy/prometheus` with
configurations for Mimir, Thanos and VictoriaMetrics. You can also scrape every 60 s, and limit the series of a
process with `max_functions`."""


def _said(size: Size) -> Size:
    print(size, flush=True)
    return size


def main() -> None:
    """Measures the sizes, prints the table, and writes the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[10, 100, 1000], help="numbers of processes")
    parser.add_argument("--seconds", type=float, default=200.0, help="how long each runs")
    parser.add_argument("--interval", type=float, default=30.0, help="seconds between two scrapes")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the page")
    args = parser.parse_args()
    # A block holds two hours: at 30 s, 240 samples of a series. So many are here in minutes, of a few processes.
    with ThreadPoolExecutor() as pool:
        stored = pool.submit(measure, 5, seconds=max(args.seconds, 240.0), interval=1.0)
        sizes = [
            _said(measure(count, seconds=args.seconds, interval=args.interval)) for count in sorted(args.sizes)[::-1]
        ][::-1]
        sizes = [dataclasses.replace(each, bytes_per_sample=stored.result().bytes_per_sample) for each in sizes]
    print(table(sizes))
    if args.markdown:
        args.markdown.write_text(page(sizes))


if __name__ == "__main__":
    main()
