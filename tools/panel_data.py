"""Asks a Prometheus for every query of every dashboard, as Grafana would, and tells which give an error or nothing.

python -m tools.panel_data                          # a Prometheus and two programs of its own, for a minute
python -m tools.panel_data http://localhost:9090    # one that is there
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from jaxobs.ops.monitoring import alerting, boards, drawing, yaml_text
from jaxobs.ops.monitoring.panel_types import Board, Panel
from jaxobs.ops.monitoring.site import Site
from tools import faster, made_up_devices
from tools.ports import free_port

SITE = Site()
SCRAPE = "1s"
RULES_EVERY = "2s"
ALL = {
    **dict.fromkeys(SITE.grouping, ".*"), "job": ".+", "instance": ".+", "function": ".+", "device": ".+",
    "loop": ".+", "route": ".+",
}  # fmt: skip
"""Values of the variables when somebody opens a dashboard."""


@dataclass(frozen=True)
class Span:
    """A stretch of time, in seconds since the epoch."""

    start: float
    end: float
    step: float
    rate_interval: str = "15s"

    def values(self) -> dict[str, str]:
        """Grafana's own variables."""
        return {
            "__rate_interval": self.rate_interval,
            "__interval": f"{max(1, round(self.step))}s",
            "__range": f"{max(1, round(self.end - self.start))}s",
        }


@dataclass(frozen=True)
class Answer:
    """Answer of a Prometheus to one query of a panel."""

    panel: Panel
    letter: str
    expr: str
    """With its variables put in."""
    series: Sequence[Mapping[str, Any]] = ()
    error: str = ""


class Prometheus:
    """A Prometheus of one's own on loopback, with the recording and alerting rules, evaluated every two seconds.

    `factor`: the rules are on a clock that is so many times faster.
    """

    def __init__(self, targets: Mapping[str, Iterable[str]], factor: float = 1) -> None:
        binary = shutil.which("prometheus")
        if binary is None:
            raise SystemExit("`prometheus` is not installed. On Debian: apt-get install prometheus")
        self._folder = Path(tempfile.mkdtemp(prefix="jaxobs-panels-"))
        groups = alerting.groups(SITE)
        if factor != 1:
            groups = [faster.group(group, factor) for group in groups]
        else:
            for group in groups:
                group["interval"] = RULES_EVERY
        (self._folder / "rules.yaml").write_text(yaml_text.dump({"groups": groups}, what="alerts"))
        config = {
            "global": {"scrape_interval": SCRAPE, "evaluation_interval": RULES_EVERY},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [
                {
                    "job_name": job, "honor_labels": True,
                    "static_configs": [{"targets": list(addresses), "labels": {"pod": job}}],
                }
                for job, addresses in targets.items()
            ],
        }  # fmt: skip
        (self._folder / "prometheus.yml").write_text(json.dumps(config))
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = (self._folder / "log").open("w")
        self._process = subprocess.Popen(
            [
                binary, f"--config.file={self._folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={urllib.parse.urlsplit(self.url).netloc}",
            ],
            stdout=self._log, stderr=self._log,
        )  # fmt: skip
        try:
            self._await()
        except BaseException:
            self.close()
            raise

    def _await(self) -> None:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{self.url}/-/ready", timeout=1).close()
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.1)
            else:
                return
        raise RuntimeError((self._folder / "log").read_text()[-2000:])

    def close(self) -> None:
        """Stops it and removes its data."""
        self._process.terminate()
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def programs(count: int, seconds: float, *options: str) -> Iterator[list[str]]:
    """Runs `count` times `tools.board_program`, each a little slower than the one before; yields their addresses."""
    folder = tempfile.mkdtemp(prefix="jaxobs-cache-")
    ports = [free_port() for _ in range(count)]
    commands = [
        [sys.executable, "-m", "tools.board_program", str(port), "--seconds", str(seconds), *options,
         "--cache", folder, "--pace", str(0.02 + 0.01 * place)]
        for place, port in enumerate(ports)
    ]  # fmt: skip
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for command in commands]
    try:
        for program in running:
            assert program.stdout is not None
            if not program.stdout.readline():
                raise RuntimeError(f"{program.args!r} ended at once")
        yield [f"127.0.0.1:{port}" for port in ports]
    finally:
        for each in running:
            each.terminate()
        for program in running:
            program.wait()
            assert program.stdout is not None
            program.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def devices() -> Iterator[list[str]]:
    """A process with made-up GPUs and one with made-up TPUs; their addresses."""
    servers = [made_up_devices.serve(0, platform) for platform in ("gpu", "tpu")]
    try:
        yield [f"127.0.0.1:{each.server_port}" for each in servers]
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@contextmanager
def host() -> Iterator[list[str]]:
    """Runs a real node_exporter for the memory of this machine; yields its address, if it is installed."""
    if (binary := shutil.which("prometheus-node-exporter")) is None:
        yield []
        return
    address = f"127.0.0.1:{free_port()}"
    options = ["--collector.disable-defaults", "--collector.meminfo", f"--web.listen-address={address}"]
    running = subprocess.Popen([binary, *options], stderr=subprocess.DEVNULL)
    try:
        yield [address]
    finally:
        running.terminate()
        running.wait()


def get(url: str, path: str, **parameters: object) -> Any:
    """The `data` of an answer of Prometheus' API.

    Raises:
      ValueError: it says that the query is wrong; with its words.
    """
    body = urllib.parse.urlencode(parameters).encode()
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}", data=body or None, timeout=60) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise ValueError(json.load(error).get("error", str(error))) from error


def drawn(board: Board) -> dict[str, Any]:
    """The JSON of a dashboard."""
    found: dict[str, Any] = json.loads(drawing.draw(board, SITE))
    return found


def variables(raw: Mapping[str, Any]) -> dict[str, str]:
    """The values of a dashboard's variables when it is opened."""
    typed = {each["name"]: each["query"] for each in raw["templating"]["list"] if each["type"] == "textbox"}
    return ALL | typed


def put_in(expr: str, values: Mapping[str, str]) -> str:
    """A query with its variables put in."""
    for name in sorted(values, key=len, reverse=True):
        expr = expr.replace(f"${name}", values[name])
    return expr


def answers(board: Board, url: str, span: Span, job: str = ".+") -> Iterator[Answer]:
    """Yields Prometheus' answer to each query of a dashboard for some jobs."""
    raw = drawn(board)
    by_id = {panel["id"]: panel for panel in raw["panels"]}
    values = variables(raw) | span.values() | {"job": job}
    for row in board.rows:
        for panel in row.panels:
            for target in by_id[alerting.panel_id(panel.key)]["targets"]:
                yield _answer(panel, target, put_in(target["expr"], values), url, span)


def _answer(panel: Panel, target: Mapping[str, Any], expr: str, url: str, span: Span) -> Answer:
    try:
        if target["instant"]:
            found = get(url, "query", query=expr, time=span.end)
        else:
            found = get(url, "query_range", query=expr, start=span.start, end=span.end, step=span.step)
    except ValueError as error:
        return Answer(panel, target["refId"], expr, error=str(error))
    return Answer(panel, target["refId"], expr, found["result"])


def main() -> int:
    """Prints what gives an error or nothing; 1 if there is an error, or nothing where there should be something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", help="of a Prometheus; by default one of its own")
    parser.add_argument("--seconds", type=float, default=60, help="how long to look back, and to let its own run")
    args = parser.parse_args()
    if args.url:
        return report(args.url, args.seconds)
    with programs(2, args.seconds + 30) as addresses, Prometheus({"program": addresses}) as prometheus:
        time.sleep(args.seconds)
        return report(prometheus.url, args.seconds)


def report(url: str, seconds: float) -> int:
    """Prints each panel whose answer is an error or empty."""
    now = time.time()
    span = Span(now - seconds, now, max(1.0, seconds / 200))
    wrong = 0
    for board in boards.boards():
        found = list(answers(board, url, span))
        for panel in dict.fromkeys(each.panel.key for each in found):
            mine = [each for each in found if each.panel.key == panel]
            errors = [f"{each.letter}: {each.error}\n    {each.expr}" for each in mine if each.error]
            empty = not any(each.series for each in mine)
            needs = mine[0].panel.needs
            wrong += bool(errors) or (empty and not needs)
            if errors or empty:
                print(
                    f"{board.name}/{panel}: {'; '.join(errors) or 'nothing'}" + (f" (needs {needs})" if needs else "")
                )
        print(f"{board.name}: {len(found)} queries, {sum(len(each.series) for each in found)} series")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
