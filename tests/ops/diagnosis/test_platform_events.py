"""Messages of the platform on machines, pods and signals: what took the job away, and what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import said

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, NO_FAULT

STEP = "2026-01-31 09:00:0{0},000 INFO train: step {0} loss 1.0\n"
BEFORE = "".join(STEP.format(number) for number in range(4))
EVICTED = (
    "2026-01-31T09:00:02Z Warning Evicted pod/agent-x2vkq The node was low on resource: memory. Container agent was "
    "using 812404Ki, request is 64Mi.\n"
)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("GCP Metadata Service says termination is imminent", (CAUSE, ["preemption"])),
        ("watcher: no termination notice yet", (NO_FAULT, [])),
        ("Failed to retrieve preemption notice from coordination service: UNAVAILABLE: Socket closed", (NO_FAULT, [])),
        ("watcher: spot instance i-07a1 was reclaimed", (CAUSE, ["preemption"])),
        ("launch: a spot instance may be reclaimed at any time", (NO_FAULT, [])),
        ("Node will be drained: scheduled host maintenance", (CAUSE, ["preemption"])),
        ("launch: maintenance window: Saturday 02:00-06:00 UTC", (NO_FAULT, [])),
        ("launch: next scheduled host maintenance: 2026-02-07", (NO_FAULT, [])),
        ("node enters maintenance window", (CAUSE, ["preemption"])),
        ('watcher: {"Events":[{"EventStatus":"Scheduled","EventType":"Preempt"}]}', (CAUSE, ["preemption"])),
        ('watcher: {"Events":[{"EventStatus":"Scheduled","EventType":"Freeze"}]}', (NO_FAULT, [])),
        ("fleet: status: instance-terminated-no-capacity", (CAUSE, ["preemption"])),
        ("fleet: status: instance-terminated-by-user", (NO_FAULT, [])),
        ("batch: StatusReason: Host EC2 (instance i-0878) terminated.", (CAUSE, ["preemption"])),
        ("batch: TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", (CAUSE, ["host_out_of_memory"])),
        ("batch: job 31 exceeded MEM usage hard limit (2528 > 1126)", (CAUSE, ["host_out_of_memory"])),
        (
            "batch: MaxRuntimeExceeded - Training job runtime exceeded MaxRuntimeInSeconds provided",
            (CAUSE, ["time_limit"]),
        ),
        ("batch: MaxRuntimeInSeconds: 86400, mem limit: 4 GB", (NO_FAULT, [])),
        ("launch: Quota 'TPUV4sPerProject' exhausted.", (CAUSE, ["not_scheduled"])),
        ("launch: quota of TPUV4sPerProject: 20800", (NO_FAULT, [])),
        ("Normal EvictedDueToPreempted workload/train", (CAUSE, ["preemption"])),
        ("Normal EvictedDueToNodeFailures workload/train", (CAUSE, ["host_failed"])),
        (
            "The node with node id: 5 has been marked dead because the detector has missed too many heartbeats",
            (CAUSE, ["host_failed"]),
        ),
        ("The node with node id: 5 has been marked dead because of EXPECTED_TERMINATION", (NO_FAULT, [])),
        ("Warning Evicted pod/train-0 Eviction API: evicting", (CAUSE, ["preemption"])),
        ("train: rank 3 received SIGTERM, saving", (INCONCLUSIVE, [])),
        ("signals: a checkpoint is written once a rank has got SIGTERM", (NO_FAULT, [])),
        ("signals: SIGTERM received: False", (NO_FAULT, [])),
        ("signals: 300 s of grace before SIGKILL", (NO_FAULT, [])),
        ("launcher: process 4711 ended with signal 9", (INCONCLUSIVE, [])),
    ],
)
def test_a_line_of_the_platform(tmp_path: Path, line: str, verdict: tuple[str, list[str]]) -> None:
    """A notice that came is one; a plan, a setting or an answer that says no is none."""
    assert said(tmp_path, f"{BEFORE}2026-01-31 09:00:05,000 INFO {line}\n") == verdict


def test_a_signal_behind_the_end_ends_nobody(tmp_path: Path) -> None:
    """A node that is no longer used goes away."""
    end = "2026-01-31 09:00:04,000 INFO train: Training complete\n"
    signal = "2026-01-31 09:05:04,000 INFO node: received SIGTERM\n"
    assert said(tmp_path, BEFORE + end + signal)[0] == NO_FAULT
    assert said(tmp_path, BEFORE + signal)[0] == INCONCLUSIVE


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


FABRIC = "ip-10-0-0-1:87:95 [3] "


@pytest.mark.parametrize(
    ("line", "causes"),
    [
        ("create_component:496 NCCL WARN NET/OFI Couldn't enable endpoint. RC: -12, ERROR: Cannot allocate memory",
         ["nccl_start"]),
        ("NCCL INFO NET/OFI No NIC info for dev 0", []),
        ("ofi_process_cq:1033 NCCL WARN NET/OFI Request 0x7f2d completed with error. RC: 21. Error: unknown error.",
         ["network_fault"]),
        ("NCCL INFO NET/OFI Request 0x7f2d completed", []),
        ("NCCL WARN Call to ibv_create_qp failed", ["nccl_start"]),
        ("NCCL WARN Call to ibv_modify_qp failed with error Connection timed out", ["network_fault"]),
    ],
)  # fmt: skip
def test_a_line_of_a_fabric(tmp_path: Path, line: str, causes: list[str]) -> None:
    """A plugin that could not set itself up, a transfer that failed, and what it says otherwise."""
    assert said(tmp_path, f"{BEFORE}{FABRIC}{line}\n")[1] == causes


@pytest.mark.parametrize(
    ("message", "causes"),
    [
        ('Error opening "zarr" driver: Error reading "gs://b/p/.zarray": CURL error[6] Could not resolve host: x',
         ["storage_unavailable"]),
        ('Error opening "zarr" driver: Error reading local file "/p/.zarray": Invalid key', ["checkpoint_damaged"]),
        ("Failed Reason: InternalServerError: We encountered an internal error. Please try again.", ["program_error"]),
        ('INTERNAL: Error reading "p/0": We encountered an internal error. Please try again.', ["storage_unavailable"]),
    ],
)  # fmt: skip
def test_an_array_that_cannot_be_read(tmp_path: Path, message: str, causes: list[str]) -> None:
    """The store that fails says nothing about the checkpoint in it."""
    raised = f'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: {message}\n'
    assert said(tmp_path, BEFORE + raised) == (CAUSE, causes)


def test_a_library_in_use_by_its_parent(tmp_path: Path) -> None:
    """Children of a process that trains say so; behind a new start it is another process that holds the chips."""
    line = "libtpu.so already in used by another process. Not attempting to load libtpu.so in this process.\n"
    assert said(tmp_path, BEFORE + line)[0] == NO_FAULT
    again = "2026-01-31 09:00:08,000 INFO main: Initializing distributed\n"
    assert said(tmp_path, BEFORE + again + line) == (CAUSE, ["accelerator_in_use"])
    assert said(tmp_path, line) == (CAUSE, ["accelerator_in_use"])


@pytest.mark.parametrize(
    ("line", "onset"),
    [
        ("012 (1201.000.000) 2020-06-11 11:02:11 Docker job has gone over memory limit of 1024 Mb",
         "2020-06-11T11:02:11.000000Z"),
        ("Fri Jul 23 10:59:54 2021: [PE_0]:inet_setup_listen_socket: bind failed port 1371 Address already in use",
         "2021-07-23T10:59:54.000000Z"),
    ],
)  # fmt: skip
def test_times_of_launchers(tmp_path: Path, line: str, onset: str) -> None:
    """As HTCondor and Cray's PMI write them."""
    log = tmp_path / "job.log"
    log.write_text(f"{line}\n", encoding="utf-8")
    assert [each.onset for each in diagnose(gather(Inputs(logs=(str(log),)))).causes] == [onset]


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


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        ("E0131 09:06:00.000000 9 x.cc:3] Megascale hang detected: Timed out waiting for 4 graphs. Timeout: 5m\n"
         "2026-01-31 09:07:00,000 INFO train: step 5 loss 1.0\n2026-01-31 09:07:05,000 INFO train: step 6 loss 1.0\n",
         (NO_FAULT, [])),
        ("h:1:2 [3] transport/nvls.cc:211 NCCL WARN Cuda failure 802 'system not yet initialized'\n",
         (CAUSE, ["nccl_start"])),
        ("E0131 09:06:00.000000 9 x.cc:3] failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet "
         "initialized\n", (CAUSE, ["no_accelerator"])),
        ("WARNING: could not determine TPU accelerator type. Set env var TPU_ACCELERATOR_TYPE to set manually.\n"
         "2026-01-31 09:07:00,000 INFO train: step 5 loss 1.0\n", (NO_FAULT, [])),
        ("salloc: error: Node failure on worker-1\n", (CAUSE, ["host_failed"])),
    ],
)  # fmt: skip
def test_what_a_runtime_says_of_its_start_and_its_waits(
    tmp_path: Path, log: str, verdict: tuple[str, list[str]]
) -> None:
    """NCCL asks for more than the driver; a wait that ends was none."""
    assert said(tmp_path, BEFORE + log) == verdict
