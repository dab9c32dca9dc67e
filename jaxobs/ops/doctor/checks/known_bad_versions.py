"""Versions that are known to compute wrong numbers or to break, with who says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxobs.ops.doctor.findings import Finding, ok
from jaxobs.ops.doctor.machine import Machine, release

ABOUT = "Whether a version is installed that is known to compute wrong numbers or to break."


@dataclass(frozen=True, slots=True)
class Bad:
    """Versions of one package."""

    package: str
    """A regular expression for its whole name."""
    since: tuple[int, ...]
    before: tuple[int, ...]
    where: Callable[[Machine], bool]
    severity: str
    why: str
    fix: str
    source: str


def _compute_capability(*majors: int) -> Callable[[Machine], bool]:
    """Returns whether a GPU of one of these generations is here, by its model: the driver's library may be missing."""
    models = {9: ("H100", "H200", "GH200", "H800"), 10: ("B100", "B200", "GB200", "B300", "GB300"), 11: ("Thor",)}
    wanted = tuple(name for major in majors for name in models[major])

    def here(machine: Machine) -> bool:
        gpus = machine.gpus
        return not isinstance(gpus, str) and any(name in (each.model or "") for each in gpus for name in wanted)

    return here


def _nvidia(machine: Machine) -> bool:
    return bool(machine.nvidia_devices)


def _several_gpus_and_new_cublas(machine: Machine) -> bool:
    cublas = machine.versions(r"nvidia-cublas(-cu12|-cu13)?").values()
    return len(machine.nvidia_devices) > 1 and any(release(each) >= (12, 9) for each in cublas)


_TABLE = "the version table in jax_plugins/cuda/__init__.py of JAX"

KNOWN = (
    Bad(
        r"nvidia-cublas(-cu12|-cu13)?", (12, 8), (13, 2), _compute_capability(10, 11), "critical",
        "Kernels that run at the same time free tensor memory several times: silent data corruption.",
        'pip install -U "nvidia-cublas>=13.2"', _TABLE,
    ),
    Bad(
        r"nvidia-cudnn(-cu12|-cu13)?", (9,), (9, 10, 1), _several_gpus_and_new_cublas, "critical",
        "With cuBLAS 12.9 or later, some matrix products on several GPUs are wrong; JAX refuses to start.",
        'pip install -U "nvidia-cudnn-cu12>=9.10.1"', _TABLE,
    ),
    Bad(
        r"nvidia-cudnn(-cu12|-cu13)?", (9, 10), (9, 10, 1), _nvidia, "warning",
        "Its data types are numbered differently: JAX refuses it unless it was built with it.",
        'pip install -U "nvidia-cudnn-cu12>=9.10.1"', _TABLE,
    ),
    Bad(
        "jax", (0, 7, 2), (0, 8, 1), _nvidia, "info", "`eigh` fails for large matrices on GPUs.",
        'pip install -U "jax>=0.8.1"', "jax-ml/jax#33062",
    ),
    Bad(
        "jax", (0,), (0, 10), _nvidia, "info",
        "`irfftn` over several axes differs between CPU and GPU where the input is not symmetric.",
        'pip install -U "jax>=0.10"', "jax-ml/jax#29325",
    ),
    Bad(
        "jax", (0,), (0, 10), lambda machine: bool(machine.tpu_devices), "info",
        "`jax.distributed.initialize` raises IndexError on a managed instance group of TPU VMs.",
        'pip install -U "jax>=0.10"', "jax-ml/jax#36593",
    ),
    Bad(
        "jax", (0,), (0, 7, 2), lambda machine: True, "info",
        "`jax.random.randint` is biased for integers of 8 and 16 bits.", 'pip install -U "jax>=0.7.2"',
        "jax-ml/jax#27742",
    ),
    Bad(
        r"nvidia-cuda-nvcc(-cu12|-cu13)?", (12,), (12, 6, 3), _compute_capability(9), "warning",
        "This ptxas miscompiles some of XLA's kernels on Hopper.", 'pip install -U "nvidia-cuda-nvcc-cu12>=12.6.85"',
        "openxla/xla#19927",
    ),
    Bad(
        r"nvidia-cuda-nvcc(-cu11)?", (0,), (11, 1), _nvidia, "critical",
        "This ptxas is known to miscompile XLA code.", 'pip install -U "jax[cuda12]"', "jax-ml/jax#10083",
    ),
)  # fmt: skip


def check(machine: Machine) -> Iterator[Finding]:
    """By a table; an entry counts only on the hardware that it is about."""
    found = False
    for bad in KNOWN:
        for name, version in machine.versions(bad.package).items():
            if bad.since <= release(version) < bad.before and bad.where(machine):
                found = True
                yield Finding(
                    severity=bad.severity, title=f"{name} {version} is known to be bad here", entity=name,
                    evidence=f"{name} {version}; see {bad.source}", why=bad.why, fix=bad.fix,
                )  # fmt: skip
    if not found:
        yield ok("No version that is known to be bad", f"{len(KNOWN)} entries compared")
