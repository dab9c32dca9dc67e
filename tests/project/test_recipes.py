"""Recipes of docs/systems that need other people's clusters: what can be tried of them without these."""

import importlib
import multiprocessing
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from helpers.paths import ROOT
from helpers.run_programs import environment

import jaxobs

CLUSTER = ROOT / "examples" / "cluster"
PLUGIN = ROOT / "examples" / "vllm_plugin"
CLUSTERS = (ROOT / "docs" / "systems" / "clusters.md").read_text(encoding="utf-8")
SHELL = sorted([*CLUSTER.glob("*.sh"), *CLUSTER.glob("*.sbatch")])
MANIFESTS = sorted(CLUSTER.glob("*.yaml"))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_is_that_of_the_page_and_is_scraped(manifest: Path) -> None:
    text = manifest.read_text(encoding="utf-8")
    assert f"```yaml\n{text}```" in CLUSTERS
    spec = yaml.safe_load(text)["spec"]
    for outer in spec.get("replicatedJobs", [{"template": {"spec": spec}}]):
        pod = outer["template"]["spec"]["template"]
        [container] = pod["spec"]["containers"]
        known = {each["name"]: each for each in container["env"]}
        assert pod["metadata"]["labels"]["jaxobs.scrape"] == "true"
        assert {"JAXOBS_ADDR", "JAXOBS_EVENT_LOG", "JAXOBS_RUN_ID"} == {*known}
        assert container["ports"] == [{"name": "jaxobs", "containerPort": 9464}]
        mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert {each["name"] for each in pod["spec"]["volumes"]} == {*mounts}
        assert known["JAXOBS_EVENT_LOG"]["value"].startswith(mounts["logs"])


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_a_script_is_shell_and_that_of_the_page(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text(encoding="utf-8")
    assert script.suffix == ".sbatch" or f"\n{text}```" in CLUSTERS


def test_a_preempted_host_has_left_its_logs(tmp_path: Path) -> None:
    """The training ends only when its log is in the bucket: a copy at the end alone would come too late."""
    stand_ins = {
        "gcloud": f'[ "$1 $2 $3" = "storage rsync --recursive" ] && cp "$4"/* {tmp_path}/bucket',
        "sleep": f"exec '{sys.executable}' -c 'import time; time.sleep(0.05)'",
        "jaxobs": f"echo one > ~/logs/events; for _ in $(seq 600); do [ -s {tmp_path}/bucket/events ] && "
        "{ echo two >> ~/logs/events; exit 0; }; sleep 1; done; exit 1",
    }
    for name, body in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "bucket").mkdir()
    variables = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "-c", (CLUSTER / "tpu_vm.sh").read_text(encoding="utf-8")]
    subprocess.run(command, env=variables, check=True, timeout=120, capture_output=True)
    assert (tmp_path / "bucket" / "events").read_text() == "one\ntwo\n"


@pytest.mark.slow
def test_two_processes_train_as_slurm_starts_them(tmp_path: Path) -> None:
    job = {"SLURM_JOB_ID": str(random.randrange(4096)), "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_NTASKS": "2"}
    job |= {"SLURM_STEP_NUM_TASKS": "2", "JAXOBS_EVENT_LOG": "events-{pid}.jsonl", "JAXOBS_PORT": "0"}
    command = [sys.executable, "-m", "jaxobs", "run", str(CLUSTER / "train_many.py"), "--steps", "20", "--pause", "0"]
    started = [
        subprocess.Popen(
            command, cwd=tmp_path, env=environment(**job, SLURM_PROCID=str(each), SLURM_LOCALID=str(each)),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for each in range(2)
    ]  # fmt: skip
    printed = [each.communicate(timeout=200)[0] for each in started]
    assert [each.returncode for each in started] == [0, 0], printed
    assert ["step 0: loss" in each for each in printed] == [True, False]
    assert len([*tmp_path.glob("events-*.jsonl")]) == 2


def test_the_plugin_of_vllm_starts_jaxobs_in_the_engine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))
    [entry] = project["project"]["entry-points"]["vllm.general_plugins"].values()
    module, _, function = entry.partition(":")
    assert project["tool"]["setuptools"]["py-modules"] == [module]
    monkeypatch.syspath_prepend(str(PLUGIN))
    plugin = getattr(importlib.import_module(module), function)
    started: list[str] = []
    for name in ("MainProcess", "EngineCore", "EngineCore_DP0", "APIServer_0"):
        monkeypatch.setattr(multiprocessing, "current_process", lambda name=name: SimpleNamespace(name=name))
        monkeypatch.setattr(jaxobs, "start", lambda name=name: started.append(name))
        plugin()
    assert started == ["EngineCore", "EngineCore_DP0"]


def test_the_script_for_maxdiffusion_compiles() -> None:
    file = ROOT / "examples" / "maxdiffusion_tiny.py"
    compile(file.read_text(encoding="utf-8"), str(file), "exec")
