"""Recorded series of our rules go into a real long-term store, with the configuration that we generate."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.requirements import program

from benchmarks.fleet_scale import Processes
from jaxobs.ops.monitoring import alerting, yaml_text
from jaxobs.ops.monitoring.deploying import prometheus
from jaxobs.ops.monitoring.site import Site
from tools.ports import free_port

WITHIN = 60.0
"""Seconds in which the store must know what was scraped and recorded."""
RECORDED = "job_instance_device:jax_device_memory_headroom_ratio:min"
RAW = "jax_device_memory_in_use_bytes"


@contextmanager
def running(command: list[str | Path], log: Path) -> Iterator[None]:
    """A program until the end of the block; its last words where the block fails."""
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield
    except BaseException:
        print(log.read_text()[-3000:])
        raise
    finally:
        process.kill()  # nothing of it is wanted, and both take their time to write it down
        process.wait()


def query(url: str, expression: str) -> list[dict[str, Any]]:
    """The instant vector of an expression, by the API that both speak; nothing until it answers."""
    asked = urllib.parse.urlencode({"query": expression, "nocache": 1})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{asked}", timeout=120) as answer:
            return list(json.load(answer)["data"]["result"])
    except OSError:
        return []


def awaited(ask: Callable[[], list[dict[str, Any]]], deadline: float) -> list[dict[str, Any]]:
    """The first answer with something in it."""
    while not (found := ask()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.3)
    return found


@pytest.mark.slow
def test_store_has_what_prometheus_has(tmp_path: Path) -> None:
    """VictoriaMetrics answers a raw and a recorded series with all labels, the writer's own and the same values."""
    store, server = (f"127.0.0.1:{free_port()}" for _ in range(2))
    site = Site(scrape_interval="1s")
    groups = [{**each, "interval": "1s"} for each in alerting.recording_groups(site)]
    (tmp_path / "jaxobs.rules.yaml").write_text(yaml_text.dump({"groups": groups}, what="alerts"))
    with Processes(functions=3, devices=2, tick=60.0).served() as address:
        config = prometheus.prometheus(site, "victoriametrics")
        (wanted,) = config["remote_write"]
        wanted["url"] = wanted["url"].replace("victoria-metrics:8428", store)
        config["scrape_configs"] = [{"job_name": "train", "static_configs": [{"targets": [address]}]}]
        (tmp_path / "prometheus.yaml").write_text(yaml_text.dump(config, what="prometheus"))
        kept: list[str | Path] = [
            program("victoria-metrics"), f"-storageDataPath={tmp_path / 'store'}", f"-httpListenAddr={store}",
            "-search.latencyOffset=0s",
        ]  # fmt: skip
        writer: list[str | Path] = [
            program("prometheus"), f"--config.file={tmp_path / 'prometheus.yaml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address={server}",
        ]  # fmt: skip
        with running(kept, tmp_path / "store.log"), running(writer, tmp_path / "server.log"):
            deadline = time.monotonic() + WITHIN
            for name in (RAW, RECORDED):
                far = awaited(lambda name=name: query(f"http://{store}", name), deadline)
                near = awaited(lambda name=name: query(f"http://{server}", name), deadline)
                assert {each["metric"].pop("prometheus") for each in far} == {"jax-0"}
                assert {each["metric"]["device"] for each in far} == {"gpu:0", "gpu:1"}
                # It keeps twelve digits.
                assert _values(far) == pytest.approx(_values(near), rel=1e-9)


def _values(vector: list[dict[str, Any]]) -> dict[tuple[tuple[str, str], ...], float]:
    return {tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in vector}
