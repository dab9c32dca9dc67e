"""The process on its host: against Prometheus' own client, the kernel's files as recorded, and real control groups."""

import contextlib
import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.run_programs import run
from prometheus_client import CollectorRegistry, ProcessCollector

from jaxobs.recorder import host

RECORDED: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("control_groups.toml").read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_what_the_control_groups_allow(name: str, tmp_path: Path) -> None:
    """The lowest limit above the process counts, whichever version; nothing is said without one."""
    case = RECORDED[name]
    for path, text in case["files"].items():
        (tmp_path / "groups" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / path).write_text(text)
    (tmp_path / "own").write_text(case["own"])
    found = host.Limits(case["total"], str(tmp_path / "groups"), str(tmp_path / "own")).figures()
    assert {name.removeprefix(host.CONTAINER): value for name, value in found.items()} == case["figures"]


def test_figures_are_those_of_prometheus_own_client() -> None:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    theirs = {sample.name: sample.value for family in registry.collect() for sample in family.samples}
    ours = host.figures()
    assert set(theirs) <= set(ours)
    assert ours["process_max_fds"] == theirs["process_max_fds"]
    assert ours["process_open_fds"] == theirs["process_open_fds"] - 1  # the client counts the one that it lists by
    assert ours["process_start_time_seconds"] == pytest.approx(theirs["process_start_time_seconds"], abs=2.0)
    assert ours["process_virtual_memory_bytes"] == pytest.approx(theirs["process_virtual_memory_bytes"], rel=0.2)
    assert ours["process_resident_memory_bytes"] == pytest.approx(theirs["process_resident_memory_bytes"], rel=0.2)


LIMITED = Path(__file__).with_name("limited_process.txt").read_text(encoding="utf-8")


BOUNDS = (
    ("memory", {"memory.limit_in_bytes": str(2**30), "cpu.cfs_quota_us": "20000"}),
    ("cpu", {"memory.limit_in_bytes": str(2**30), "cpu.cfs_quota_us": "20000"}),
    ("", {"memory.max": str(2**30), "cpu.max": "20000 100000"}),
)
"""Limits of a control group by the file that sets them: of version 1, where each controller has its own, and of 2."""


@pytest.fixture
def groups() -> Iterator[list[Path]]:
    """Control groups of the kernel that allow a process 1 GiB and a fifth of a processor."""
    made: list[Path] = []
    for controller, limits in BOUNDS:
        group = Path(host.GROUPS, controller, f"jaxobs-test-{os.getpid()}")
        with contextlib.suppress(OSError):
            if not (group.parent / "cgroup.procs").exists():
                continue
            group.mkdir()
            for name, value in limits.items():
                if (group / name).exists():
                    (group / name).write_text(value)
            made.append(group)
    yield made
    for group in made:
        group.rmdir()


def test_the_event_log_says_what_its_disk_has_left(tmp_path: Path) -> None:
    done = run(LIMITED, JAXOBS_EVENT_LOG=str(tmp_path / "events.jsonl"))
    left = json.loads(done.stdout)["jaxobs_event_log_left_bytes"]
    assert left == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.2), done.stderr


def test_a_real_limit_and_a_real_quota(groups: list[Path]) -> None:
    """A process that the kernel bounds reports by `/metrics` what the kernel's own files say."""
    if len(groups) < 2:
        pytest.skip("control groups can be made by root alone, and not in every container")
    done = run(LIMITED, *groups)
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    assert found["jax_container_spec_memory_limit_bytes"] == 2**30
    assert found["process_resident_memory_bytes"] > 2**26
    used = found["jax_container_memory_usage_bytes"] - found["jax_container_memory_reclaimable_bytes"]
    assert 2**26 < used < 2**30
    assert found["jax_container_cpu_cfs_throttled_periods_total"] > 0
    assert found["jax_container_cpu_cfs_throttled_seconds_total"] > 0.0
    assert found["jax_container_cpu_cfs_periods_total"] >= found["jax_container_cpu_cfs_throttled_periods_total"]
