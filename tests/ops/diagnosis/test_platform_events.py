"""Messages of the platform on machines, pods and signals: what took the job away, and what only looks like it."""

from pathlib import Path

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, NO_FAULT

STEP = "2026-01-31 09:00:0{0},000 INFO train: step {0} loss 1.0\n"
BEFORE = "".join(STEP.format(number) for number in range(4))
EVICTED = (
    "2026-01-31T09:00:02Z Warning Evicted pod/agent-x2vkq The node was low on resource: memory. Container agent was "
    "using 812404Ki, request is 64Mi.\n"
)


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        ("2026-01-31 09:00:09,000 INFO train: Training complete\n", NO_FAULT),
        ("2026-01-31 09:00:09,000 INFO train: Job finished with status FAILED\n", CAUSE),
        ("2026-01-31 09:00:03,500 INFO train: Training complete\n", CAUSE),
        ("", CAUSE),
    ],
)
def test_an_event_that_the_job_outlived(tmp_path: Path, end: str, verdict: str) -> None:
    """A pod was evicted while the job ran; it came to its end all the same, or it did not."""
    (tmp_path / "events.txt").write_text(EVICTED)
    (tmp_path / "train.log").write_text(BEFORE + end)
    inputs = Inputs(logs=(str(tmp_path / "events.txt"), str(tmp_path / "train.log")))
    assert diagnose(gather(inputs, now=1_769_850_000.0)).verdict == verdict


def test_a_mount_whose_helper_was_killed(tmp_path: Path) -> None:
    """The memory came first: what the job could not read follows from it, and not the other way round."""
    killed = (
        "2026-01-31T09:00:06Z Memory cgroup out of memory: Killed process 71 (gcs-fuse-csi-dr) total-vm:1340248kB\n"
    )
    error = "OSError: [Errno 107] Transport endpoint is not connected: '/data/1'\n"
    (tmp_path / "events.txt").write_text(killed)
    (tmp_path / "train.log").write_text(BEFORE + error)
    inputs = Inputs(logs=(str(tmp_path / "events.txt"), str(tmp_path / "train.log")))
    assert [each.id for each in diagnose(gather(inputs, now=1_769_850_000.0)).causes] == ["host_out_of_memory"]


@pytest.mark.parametrize(
    ("cause", "hosts", "found"),
    [
        ("bad TPU chips on the following hosts", "  The host that have bad TPUs are: host-13",
         [("tpu_halted", "host-13")]),
        ("bad TPU sparse core chips on the following hosts", "", [("tpu_halted", "process 0")]),
        ("a networking issue", "  The hosts are: host-2", [("network_fault", "host-2")]),
        ("inconsistent HLO module compilation across workers", "", [("programs_diverge", "process 0")]),
        ("running different modules on different devices", "", []),
    ],
)  # fmt: skip
def test_the_digest_of_a_hang(tmp_path: Path, cause: str, hosts: str, found: list[tuple[str, str]]) -> None:
    log = tmp_path / "worker-0.log"
    digest = (
        f"E0131 09:06:00.900000 9 x.cc:3] Megascale detects a hang that is likely caused by {cause}. Please help.\n"
    )
    log.write_text(f"{BEFORE}{digest}{hosts}\n", encoding="utf-8")
    diagnosis = diagnose(gather(Inputs(logs=(str(log),))))
    assert [(each.id, each.component) for each in diagnosis.causes] == found
    assert diagnosis.verdict == (CAUSE if found else INCONCLUSIVE)
