"""Keras under `jaxobs run`: the same output, the same end, and true counts. The zoo has other projects."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers.paths import PROGRAMS
from helpers.requirements import missing
from prometheus_client.parser import text_string_to_metric_families

from tools.quick_xla import quick

COMPILED = re.compile(r"Finished XLA compilation of (.+) in [0-9.e-]+ sec")


def start(command: list[str | Path], folder: Path, **more: str) -> subprocess.Popen[str]:
    """A process in a plain environment, with what it says in files: nobody need read while it runs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA"))}
    folder.mkdir()
    with (folder / "stdout").open("w") as output, (folder / "stderr").open("w") as errors:
        return subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=errors, text=True,
            env={**kept, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": quick(), "PYTHONDONTWRITEBYTECODE": "1", **more},
        )  # fmt: skip


def name_to_jax(function: str) -> str:
    """`f` for what jaxobs calls `module.Class.f`, as JAX's log has it."""
    return function.rsplit(".", 1)[-1]


def traceback(text: str) -> str:
    return text[text.rfind("Traceback (most recent call last)") :] if "Traceback" in text else ""


@pytest.mark.slow
def test_program_is_unchanged_and_counted(tmp_path: Path) -> None:
    """Output, exit code and traceback are as with plain Python; compilations equal those of JAX's own log."""
    if importlib.util.find_spec("keras") is None:
        missing("`keras` is not installed. It comes with: make setup")
    script = PROGRAMS / "keras_mlp.py"
    plain = start([sys.executable, script], tmp_path / "plain", JAX_LOG_COMPILES="1")
    files = ["--event-log", "events.jsonl", "--metrics-file", "metrics.prom"]
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", *files, script]
    observed = start(command, tmp_path / "observed", JAXOBS_RAISE_INTERNAL_ERRORS="")
    codes = [plain.wait(250), observed.wait(250)]
    said = {which: (tmp_path / which / "stderr").read_text() for which in ("plain", "observed")}
    assert codes == [1, 1], said["observed"][-3000:]
    assert (tmp_path / "observed" / "stdout").read_text() == (tmp_path / "plain" / "stdout").read_text() != ""
    assert traceback(said["observed"]) == traceback(said["plain"])

    truth = Counter(each.removeprefix("jit(").removesuffix(")") for each in COMPILED.findall(said["plain"]))
    lines = [json.loads(line) for line in (tmp_path / "observed" / "events.jsonl").read_text().splitlines()]
    compilations = [line for line in lines if line["event"] == "compilation"]
    assert len(compilations) == truth.total() >= 5
    counted = Counter(name_to_jax(each["function"]) for each in compilations)
    assert counted == truth
    assert lines[-1]["event"] == "exit"

    families = {each.name: each.samples for each in text_string_to_metric_families(metrics(tmp_path))}
    assert sum(each.value for each in families["jax_compilations"]) == truth.total()
    assert "jaxobs_internal_errors" not in families
    by_function: Counter[str] = Counter()
    for sample in families["jax_compilations"]:
        by_function[sample.labels["function"]] += int(sample.value)
    assert by_function == Counter("<eager>" if each["eager"] else each["function"] for each in compilations)


def metrics(folder: Path) -> str:
    """Returns the metrics file of the observed program."""
    return (folder / "observed" / "metrics.prom").read_text()
