"""Targets: process 0 of a real job tells a real Prometheus where the processes are scraped."""

import json
import pathlib
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.jobs import Job
from helpers.requirements import program

from jaxobs import internals
from jaxobs.base.callers import is_loopback
from jaxobs.exporters import targets
from jaxobs.exporters.forms.http_types import Request, Response
from jaxobs.findings.fleet.support.addresses import ELSEWHERE, Address, Addresses, interface
from jaxobs.state.store import Store
from jaxobs.web import server
from tools.ports import free_port

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: train
    http_sd_configs: [{{url: "{url}", refresh_interval: 1s}}]
    relabel_configs:
      - {{source_labels: [__meta_jax_process_index], target_label: rank}}
"""


def asked(store: Store) -> Response:
    return targets.routes(store)["/api/v1/targets"](Request("/api/v1/targets"))


def placed(monkeypatch: pytest.MonkeyPatch, index: int, count: int, *, awake: bool = True) -> None:
    """Makes this process one of a job, as far as the exporter can tell."""
    monkeypatch.setattr(internals, "backends_awake", lambda: awake)
    monkeypatch.setattr(internals, "process_index_and_count", lambda: (index, count))


def test_a_process_alone_lists_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list has what it serves now, under the address that it was given; it is empty if that is nothing."""
    placed(monkeypatch, 0, 1)
    store = Store()
    assert (asked(store).status, asked(store).body) == ("200 OK", b"[]")
    first, second = server.serve(store, 0, "127.0.0.1"), server.serve(store, 0, "127.0.0.1")
    assert asked(store).content_type == "application/json"
    for handle in (second, first):
        [group] = json.loads(asked(store).body)
        assert group["targets"] == [f"127.0.0.1:{handle.port}"]
        assert group["labels"] == {"__meta_jax_process_index": "0", "__meta_jax_host": socket.gethostname()}
        handle.close()
    assert json.loads(asked(store).body) == []


def test_the_list_is_whole_or_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before JAX begins, on another process, and while one has not told; after a minute it is not waited for."""
    store, now = Store(), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    placed(monkeypatch, 0, 4, awake=False)
    assert asked(store).status.startswith("503")
    placed(monkeypatch, 2, 4)
    store.part(Addresses).heard({0: Address("host0", "10.0.0.1:9464")})
    assert asked(store).status.startswith("404")
    assert b"This is process 2 of the job. Ask process 0 at 10.0.0.1:9464." in asked(store).body
    store = Store()
    placed(monkeypatch, 0, 4)
    answer = targets.routes(store)["/api/v1/targets"]
    addresses = store.part(Addresses)
    addresses.opened("10.0.0.1", 9464)
    addresses.heard({1: Address("host1", "10.0.0.2:9464"), 2: Address("host2", "")})
    refused = answer(Request("/api/v1/targets"))
    assert refused.status.startswith("503")
    assert b"1 of 4 processes have not reported their addresses yet: 3." in refused.body
    now[0] += targets.WAIT_SECONDS
    known = [["10.0.0.1:9464"], ["10.0.0.2:9464"]]
    assert [each["targets"] for each in json.loads(answer(Request("/api/v1/targets")).body)] == known
    addresses.heard({3: Address("host3", "[fd00::3]:9464")})
    assert [each["targets"] for each in json.loads(asked(store).body)] == [*known, ["[fd00::3]:9464"]]


def test_what_listens_on_loopback_is_for_its_own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Prometheus that reaches process 0 reaches no other machine's loopback."""
    placed(monkeypatch, 0, 3)
    store, here = Store(), socket.gethostname()
    addresses = store.part(Addresses)
    addresses.opened("127.0.0.1", 9464)
    addresses.heard({1: Address(here, "[::1]:9465"), 2: Address("elsewhere", "127.0.0.1:9464")})
    assert [each["targets"] for each in json.loads(asked(store).body)] == [["127.0.0.1:9464"], ["[::1]:9465"]]


@pytest.mark.parametrize("addr", ["", "0.0.0.0", "::"])
def test_an_address_that_others_can_reach(addr: str) -> None:
    """A process on all interfaces tells the address that leads to the coordinator, else the default route's."""
    addresses = Addresses()
    addresses.opened(addr, 9464)
    for coordinator in (None, "127.0.0.1:1234", "[::1]:1234", "no.such.host.invalid:1234"):
        host, _, port = addresses.own(coordinator).address.rpartition(":")
        assert port == "9464"
        assert not is_loopback(host.strip("[]"))
        assert host.strip("[]") in (interface(ELSEWHERE), socket.gethostname())
    assert interface("127.0.0.1") == "127.0.0.1"
    assert [is_loopback(host) for host in ("127.0.0.5", "::1", "localhost", "10.0.0.1", "fe80::1%eth0", "host")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


@pytest.fixture
def urls(tmp_path: pathlib.Path) -> Iterator[list[str]]:
    """The endpoints of a job of two processes."""
    job = Job(tmp_path, "serves", 2)
    try:
        said = [tmp_path / f"{index}.out" for index in range(2)]
        job.until(lambda _: all("URL" in path.read_text() for path in said))
        yield [found[1] for path in said for found in re.finditer(r"URL (\S+)", path.read_text())]
    finally:
        job.kill()


def answer(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=120) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def until(url: str, done: Any, seconds: float = 120.0) -> Any:
    """The answer that is as it should be."""
    deadline, found = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        try:
            found = answer(url)
        except (OSError, ValueError) as error:  # it does not listen yet, or says in words that it is not ready
            found = 0, str(error)
        if done(*found):
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"{url} answers {found}")


@pytest.mark.slow
def test_prometheus_finds_all_processes_by_asking_one(urls: list[str], tmp_path: pathlib.Path) -> None:
    """Prometheus discovers both, scrapes both, and each is the process that it says."""
    prometheus, promtool = program("prometheus"), program("promtool")
    listed = until(f"{urls[0]}api/v1/targets", lambda status, body: status == 200)
    assert [each["targets"] for each in listed] == [[re.sub("http://|/", "", url)] for url in urls]
    # It hears where process 0 is with its own next message, which may come later than that of process 0.
    refused = until(f"{urls[1]}api/v1/targets", lambda status, body: status == 404 and " at " in body["error"])
    assert refused["error"] == f"This is process 1 of the job. Ask process 0 at {listed[0]['targets'][0]}."
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(url=f"{urls[0]}api/v1/targets"))
    checked = subprocess.run(
        [promtool, "check", "service-discovery", "--timeout=3s", str(config), "train"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert all(each["targets"][0] in checked.stdout for each in listed)
    port = free_port()
    process = subprocess.Popen(
        [prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
         f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        query = f"http://127.0.0.1:{port}/api/v1/query?query=jax_process_info"
        found = until(query, lambda status, body: status == 200 and len(body["data"]["result"]) == 2)
        seen = {each["metric"]["instance"]: each["metric"] for each in found["data"]["result"]}
        for index, group in enumerate(listed):
            metric = seen[group["targets"][0]]
            assert (metric["process_index"], metric["rank"], metric["job"]) == (str(index), str(index), "train")
            assert not [label for label in metric if label.startswith("exported_")]
    finally:
        process.terminate()
        process.wait(120)
