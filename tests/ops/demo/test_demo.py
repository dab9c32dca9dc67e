"""`jaxobs demo`: every mistake shows, quoted from jaxobs' own events; the Prometheus comes and goes."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.paths import ROOT
from helpers.waiting import until

from jaxobs import cli
from jaxobs.base.errors import PortTakenError, install
from jaxobs.cli import demo
from jaxobs.facts.compilations import Compilation
from jaxobs.ops import local_prometheus
from jaxobs.ops.demo.troubles import COLD, EVALUATION, LAMBDA, RAGGED, SCALAR, TROUBLES, Seen
from jaxobs.ops.local_prometheus import PrometheusError

EXAMPLE = ROOT / "examples" / "train_digits.py"
COMMAND = [sys.executable, "-m", "jaxobs", "demo"]


def environment(**changed: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAXOBS_")}
    return kept | {"PYTHONIOENCODING": "utf-8", "JAX_ENABLE_COMPILATION_CACHE": "false"} | changed


def words(text: str) -> str:
    """Returns the text with every run of blanks as one, as it was before it was wrapped."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("demo")
    log, metrics = folder / "events.jsonl", folder / "metrics.prom"
    command = [*COMMAND, "--once", "--port=0", f"--event-log={log}", f"--metrics-file={metrics}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment())
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return SimpleNamespace(ended=ended, events=events, metrics=metrics.read_text())


@pytest.mark.slow
def test_once_ends_well(finished: Any) -> None:
    assert finished.ended.returncode == 0, finished.ended.stderr
    assert finished.ended.stderr == ""
    assert "\x1b" not in finished.ended.stdout


def test_every_mistake_is_named_and_quoted(finished: Any) -> None:
    said = words(finished.ended.stdout)
    compilations = [each for each in finished.events if each["event"] == "compilation"]
    for trouble in TROUBLES:
        assert trouble.name in said
        assert any(
            f'jaxobs: "{words(each["reason"])}"' in said
            for each in compilations
            if each["function"].endswith(trouble.function) and each["cause"] in trouble.causes
        ), trouble.name


def test_summary_counts_what_the_log_holds(finished: Any) -> None:
    steps = [e for e in finished.events if e["event"] == "compilation" and e["function"].endswith("train_step")]
    assert [each["cause"] for each in steps][:2] == ["first_call", "shape"]
    assert [each["cause"] for each in steps][3:] == ["dtype"]
    (row,) = [line for line in finished.ended.stdout.splitlines() if re.match(r" train_step +\d", line)]
    step = "jaxobs.ops.demo.training.train_step"
    calls = re.search(rf'jax_function_calls_total\{{function="{step}"\}} (\S+)', finished.metrics)
    assert calls is not None
    assert row.split()[1:3] == [f"{float(calls[1]):g}", "4"]
    assert re.search(
        r"went into compiling \(\d+%\); the mistakes account for .* of it \(\d+%\)", words(finished.ended.stdout)
    )


def test_model_learns(finished: Any) -> None:
    """The training is real: nine of ten digits that the model never saw are read rightly."""
    accuracy = re.search(r"It reads ([\d.]+)% of the digits", finished.ended.stdout)
    assert accuracy is not None and float(accuracy[1]) > 90


def compilation(function: str, cause: str) -> Compilation:
    return Compilation(time=0.0, function=function, cause=cause, reason="", phases={"compile": 1.0})


def test_mistake_that_does_not_show_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    seen = [
        Seen(RAGGED, [compilation("jaxobs.ops.demo.training.train_step", "shape")]),
        Seen(EVALUATION, [compilation("jaxobs.ops.demo.training.train_step", "unknown")]),
        Seen(SCALAR, [compilation("jaxobs.ops.demo.training.train_step", "unknown")]),
        Seen(LAMBDA, [compilation("another.function", "new_function")]),
    ]
    assert demo._all_as_expected(SimpleNamespace(seen=seen[:2])) is False  # type: ignore[arg-type]
    assert demo._all_as_expected(SimpleNamespace(seen=seen)) is False  # type: ignore[arg-type]
    told = capsys.readouterr().err
    assert "`ragged last batch`" not in told and "`evaluation mode left on`" not in told
    assert "`scalar that changes type` did not show as expected" in told
    assert "no compilation of `<lambda>` with the cause new_function" in told
    right = [*seen[:2], Seen(SCALAR, [compilation("train_step", "dtype")])]
    right.append(Seen(LAMBDA, [compilation("f.<lambda>", "first_call"), compilation("f.<lambda>", "new_function")]))
    right.append(Seen(COLD, [compilation("predict", "shape")]))
    assert demo._all_as_expected(SimpleNamespace(seen=right)) is True  # type: ignore[arg-type]
    assert right[-2].seconds == 1.0, "the first call would have compiled anyway"


def test_batches_cover_the_digits() -> None:
    from jaxobs.ops.demo import training

    train, test = training.load()
    assert (len(train), len(test)) == (1500, 297)
    kept = [len(labels) for _, labels in train.batches(1, keep_rest=True)]
    assert kept == [128] * 11 + [92]
    assert [len(labels) for _, labels in train.batches(1, keep_rest=False)] == [128] * 11
    images = np.concatenate([images for images, _ in train.batches(1, keep_rest=True)])
    assert sorted(map(bytes, images)) == sorted(map(bytes, train.images))


@pytest.mark.slow
def test_example_trains() -> None:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLE), "--epochs=30"],
        capture_output=True, text=True, timeout=240, env=environment(JAXOBS_PORT="0"),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    accuracy = re.search(r"epoch 30: loss [\d.]+, accuracy ([\d.]+)%", ended.stdout)
    assert accuracy is not None and float(accuracy[1]) > 85


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Returns what `jaxobs demo` says on standard error when it does not start."""
    try:
        code: object = cli.main(["demo", *arguments])
    except SystemExit as error:
        code = error.code
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    return said.err


@pytest.mark.parametrize(("module", "package"), [("flax", "flax"), ("optax", "optax"), ("sklearn", "scikit-learn")])
def test_missing_package_names_the_extra(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == module else found(name, *rest))
    wanted = f"jaxobs: `jaxobs demo` needs `{package}`, from the extra `demo`. Install it with: {install('demo')}\n"
    assert refused(capsys, "--once", "--port=0") == wanted and package in wanted.partition("pip install")[2]


def test_missing_prometheus_is_told_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refused(capsys, "--prometheus", "--port=0")
    assert "which is not on the PATH. Debian and Ubuntu: `apt install prometheus`" in said


def test_usual_port_taken_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def serve(**given: Any) -> Any:
        asked.append(given)
        if given["port"] != 0:
            raise PortTakenError("Port 9464 on 127.0.0.1 is taken.")
        return "endpoint"

    monkeypatch.setattr(demo.lifecycle, "install", lambda **settings: None)
    monkeypatch.setattr(demo.lifecycle, "serve", serve)
    monkeypatch.delenv("JAXOBS_PORT", raising=False)
    assert demo._start({}) == "endpoint"
    assert asked == [{"port": None, "addr": None}, {"port": 0, "addr": None}]
    with pytest.raises(PortTakenError):
        demo._start({"port": 9464})
    monkeypatch.setenv("JAXOBS_PORT", "9464")
    with pytest.raises(PortTakenError):
        demo._start({})


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "soon", "1e6"])
def test_minutes_are_checked(minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a number of minutes above 0, up to 1440" in refused(capsys, f"--minutes={minutes}")


@pytest.fixture
def prometheus_installed() -> None:
    if shutil.which("prometheus") is None:
        assert not os.environ.get("CI"), "CI must have the package `prometheus`"
        pytest.skip("needs the package `prometheus`")


def query(url: str, expression: str) -> list[Any]:
    address = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    with urllib.request.urlopen(address, timeout=120) as answer:
        result: list[Any] = json.load(answer)["data"]["result"]
        return result


@pytest.mark.slow
def test_paced_run_with_prometheus(prometheus_installed: None, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    output = tmp_path / "output"
    with output.open("w") as written:
        running = subprocess.Popen(
            [*COMMAND, "--minutes=0.6", "--port=0", "--prometheus"],
            stdout=written, stderr=subprocess.STDOUT, env=environment(TMPDIR=str(folder)),
        )  # fmt: skip
    try:
        url = await_match(output, r"Prometheus +(http://127\.0\.0\.1:\d+)", running)
        stored = until(lambda: query(url, 'jax_compilations_total{function=~".*train_step", cause="shape"}'))
        assert [each["value"][1] for each in stored] == ["1"]
        assert [each["value"][1] for each in query(url, "up")] == ["1"]
        running.send_signal(signal.SIGINT)
        assert running.wait(120) == 0
    finally:
        running.kill()
    said = output.read_text()
    assert "Interrupted." in said and "What the mistakes cost" in said and "ragged last batch" in said
    assert "Traceback" not in said
    assert list(folder.glob("jaxobs-prometheus-*")) == []
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{url}/-/ready", timeout=2)


def await_match(file: Path, pattern: str, running: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + 120
    while (found := re.search(pattern, file.read_text())) is None:
        assert running.poll() is None and time.monotonic() < end, file.read_text()
        time.sleep(0.1)
    return found[1]


def test_prometheus_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "prometheus"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'cannot do that'\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(local_prometheus.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(PrometheusError, match=r"did not become ready at .* Its last output: cannot do that"):
        local_prometheus.LocalPrometheus("http://127.0.0.1:9464/metrics")
    assert list(tmp_path.glob("jaxobs-prometheus-*")) == []


def test_taken_port_gives_another() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert local_prometheus.free_port(taken) != taken
