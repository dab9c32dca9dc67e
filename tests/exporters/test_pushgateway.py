"""Outcomes of batch jobs on a real Pushgateway, and gateways that refuse, hang or are not there."""

import base64
import contextlib
import logging
import re
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import run_programs
from helpers.answering import Request, serving
from helpers.made_by_hand import full_store
from helpers.paths import ROOT
from helpers.requirements import program
from helpers.waiting import until
from prometheus_client.parser import text_string_to_metric_families

from jaxobs.base.config import Settings
from jaxobs.base.errors import SettingError
from jaxobs.exporters import pushgateway
from jaxobs.facts.process import Exit
from jaxobs.state.store import Store
from tools.ports import free_port

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Debian's Pushgateway, by its address."""
    url = f"127.0.0.1:{free_port()}"
    log = tmp_path_factory.mktemp("gateway") / "log"
    with log.open("w") as out:
        process = subprocess.Popen([program("prometheus-pushgateway"), f"--web.listen-address={url}"], stderr=out)
    try:
        until(lambda: _is_ready(url), log.read_text)
        yield url
    finally:
        process.kill()
        process.wait()


def _is_ready(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{url}/-/ready", timeout=120):
        return True
    return False


def pushed(gateway: str, job: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Metrics of a job in the gateway: by name, then by the values of the labels that are not of the grouping key."""
    with urllib.request.urlopen(f"http://{gateway}/metrics", timeout=120) as answer:
        text = answer.read().decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("job") == job and not sample.name.startswith("push_"):
                own = tuple(v for k, v in sample.labels.items() if k not in ("job", "instance", "run"))
                found.setdefault(sample.name, {})[own] = sample.value
    return found


TRAINING = """
import jaxobs, jax.numpy as jnp, sys
jaxobs.install()
@jaxobs.jit
def f(x): return x + 1
for number in range(7):
    with jaxobs.step("train"):
        f(jnp.zeros(3 + (number > 4))).block_until_ready()
if len(sys.argv) > 1: raise ValueError("as asked")
"""


@pytest.mark.slow
def test_a_job_pushes_its_outcome(gateway: str) -> None:
    """Once good, once failed: everything is replaced but the last success."""
    url = f"{gateway}/metrics/job/nightly/run/a%20b"
    ended = run_programs.run(TRAINING, JAXOBS_PUSHGATEWAY=url, PYTHONPATH=str(ROOT))
    assert ended.returncode == 0, ended.stderr
    found = pushed(gateway, "nightly")
    assert set(found) == set(pushgateway.METRICS)
    assert found["jax_batch_success"] == {(): 1.0}
    assert found["jax_batch_steps"] == {("train",): 7.0}
    assert found["jax_batch_exit_info"] == {("", "normal"): 1.0}
    assert sum(found["jax_batch_time_seconds"].values()) == pytest.approx(found["jax_batch_duration_seconds"][()])
    assert 0 < found["jax_batch_goodput_ratio"][()] < 1
    assert sum(found["jax_batch_compilations"].values()) >= 2
    assert found["jax_batch_compile_seconds"][("compile",)] > 0
    assert sum(map(len, found.values())) < 50
    success = found["jax_batch_last_success_timestamp_seconds"]
    ended = run_programs.run(TRAINING, "fail", JAXOBS_PUSHGATEWAY=url, PYTHONPATH=str(ROOT))
    assert ended.returncode == 1 and "as asked" in ended.stderr
    found = pushed(gateway, "nightly")
    assert found["jax_batch_success"] == {(): 0.0}
    assert found["jax_batch_exit_info"] == {("ValueError", "exception"): 1.0}
    assert found["jax_batch_last_success_timestamp_seconds"] == success
    assert found["jax_batch_last_end_timestamp_seconds"][()] > success[()]


def close(url: str, store: Store | None = None, **settings: Any) -> Store:
    """The end of a process that has an exporter for this gateway."""
    store = store or full_store()
    store.record(Exit(time=5.0, reason="normal"))
    made = pushgateway.exporter(store, Settings(pushgateway=url, **settings))
    assert made is not None
    made.close()
    return store


def test_the_key_is_program_and_run(gateway: str) -> None:
    """The address names no key here."""
    store = full_store()
    store.program = "train.py"
    close(f"http://{gateway}/", store, run_id="exp/7")
    assert "jax_batch_success" in pushed(gateway, "train.py")
    with urllib.request.urlopen(f"http://{gateway}/metrics", timeout=120) as answer:
        assert 'run="exp/7"' in answer.read().decode()


def test_nothing_is_pushed_before_the_end_nor_by_children(gateway: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`uninstall`, other settings, a fork, other processes of the job."""
    store = full_store()
    store.program = "silent.py"
    made = pushgateway.exporter(store, Settings(pushgateway=gateway))
    assert made is not None
    made.close()
    store.record(Exit(time=5.0, reason="normal"))
    made.after_fork()
    monkeypatch.setattr(made, "_owner", -1)
    made.close()
    monkeypatch.undo()
    monkeypatch.setattr(pushgateway.internals, "process_index_and_count", lambda: (1, 2))
    made.close()
    assert pushed(gateway, "silent.py") == {}
    monkeypatch.undo()
    made.close()
    assert pushed(gateway, "silent.py") != {}


@contextlib.contextmanager
def answering(status: int, **headers: str) -> Iterator[tuple[str, list[Any]]]:
    """A gateway that gives one answer to all, and what it was asked."""
    asked: list[Any] = []

    def answer(request: Request) -> int:
        asked.append((request, request.headers.get("Authorization")))
        return status

    with serving(answer, **headers) as url:
        yield url.removeprefix("http://"), asked


def test_it_shows_who_pushes() -> None:
    """A token, or user and password from the address, which then is in no text."""
    with answering(200) as (address, asked):
        close(f"http://{address}", pushgateway_token="secret")
        close(f"http://me:pass%2Fword@{address}/prefix/metrics/job/a")
    assert asked[0][1] == "Bearer secret"
    assert asked[1] == ("/prefix/metrics/job/a", "Basic " + base64.b64encode(b"me:pass/word").decode())
    shown = repr(Settings(pushgateway="http://me:pass@host", pushgateway_token="secret"))
    assert "pass@" not in shown and "secret" not in shown


def test_a_redirect_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """The token is for the gateway that was named."""
    with answering(200) as (other, asked), answering(307, Location=f"http://{other}/") as (address, _):
        store = close(f"http://{address}", pushgateway_token="secret")
    assert asked == []
    assert store.snapshot().observer.dropped["pushgateway"] == 1


@pytest.mark.parametrize("kind", ["refused", "error", "hangs", "unknown"])
def test_a_gateway_that_fails_costs_the_push_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Counted and logged once, and the end goes on: at most as long as a push is waited for."""
    monkeypatch.setattr(pushgateway, "PUSH_SECONDS", 0.5)
    with contextlib.ExitStack() as stack:
        address = {
            "refused": lambda: f"127.0.0.1:{free_port()}",
            "error": lambda: stack.enter_context(answering(500))[0],
            "unknown": lambda: "no-such-host.invalid:9091",
            "hangs": lambda: (
                f"127.0.0.1:{stack.enter_context(socket.create_server(('127.0.0.1', 0))).getsockname()[1]}"
            ),
        }[kind]()
        with caplog.at_level(logging.WARNING, "jaxobs"):
            store = close(f"http://me:password@{address}")
    assert store.snapshot().observer.dropped["pushgateway"] == 1
    assert len([each for each in caplog.messages if "was not pushed" in each]) == 1
    assert "password" not in caplog.text


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "http://h:nonsense", "http://h/metrics/job/", "http://h/metrics/job/a/b"]
)
def test_an_address_that_is_none_is_refused_at_the_start(url: str) -> None:
    """Not at the end, when nobody looks; without the password in the message."""
    with pytest.raises(SettingError, match="`pushgateway`"):
        pushgateway.exporter(Store(), Settings(pushgateway=url))


def test_the_page_lists_what_is_pushed() -> None:
    """Each metric has its row in docs/prometheus.md, and no other is there."""
    page = (ROOT / "docs" / "prometheus.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(jax_batch_\w+)(?:\{([\w, ]+)\})?` \| (.+) \|$", page, re.MULTILINE)
    assert {name: (help, tuple(labels.split(", ")) if labels else ()) for name, labels, help in rows} == dict(
        pushgateway.METRICS
    )
