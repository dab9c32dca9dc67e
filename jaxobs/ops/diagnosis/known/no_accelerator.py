"""The accelerator is not there, or its driver is not."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import LINE, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

_LISTED = "cannot access '/dev/"
_MISSED = ("initialize backend", "TPU topology", "TPU initialization failed")


def _where_it_is_missed(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A script that finds no files of devices has looked for them; JAX has to miss them."""
    missed = {
        (each.source, each.process) for each in evidence.of_kind(LINE) if any(one in each.text for one in _MISSED)
    }
    return [each for each in signs if _LISTED not in each.text or (each.source, each.process) in missed]


KNOWN = Knowledge(
    title="JAX finds no accelerator: the device or its driver is missing",
    impact=ENDED,
    general=1,
    signs=(
        Line("no supported devices found for platform (?:CUDA|ROCM)", info=True),
        Line("NOT_FOUND: No ba16c7433 device found"),
        Line("Failed to initialize TPU system"),
        Raised(about=r"No visible (?:GPU|TPU) devices|no (?:CUDA|ROCm)-capable device is detected"),
        Line(
            r"\b[Tt][Pp][Uu] ?[Pp]latform is not available|No (?:AMD|NVIDIA|Intel) GPUs? (?:was|were) found|"
            r"Found no NVIDIA driver"
        ),
        Raised(
            about=r"Backend '(?!cpu)\w+' provides no devices|Could not initialize backend '(?!cpu)|"
            r"but no platforms that are "
            r"instances of|Could not find registered platform with (?:name|id)|'/dev/(?:accel|vfio|nvidia)|"
            r"Unable to initialize backend '(?!cpu)|Requested backend '?(?!cpu)\w+'?,? but it failed|"
            r"[Bb]ackend '?(?!cpu)\w+'? failed to initialize|Unknown backend '?(?!cpu)\w+|"
            r"[Pp]latform '?\w+'? is not (?:available|registered|present)|not in the list of known backends"
        ),
        Line(r"Unable to initialize backend '(?:cuda|gpu|tpu|rocm)'.{0,200}\(set JAX_PLATFORMS="),
        Line(
            "assert _default_backend is not None|Backend 'tpu' (?:failed|is not)|RuntimeError: No visible (?:GPU|TPU)",
            passes=False,
        ),
        Line(
            r"TPU initialization failed|open\(/dev/(?:accel|vfio)\S*\): .{0,60}(?:No such file|"
            "Operation not permitted)"
        ),
        Line(
            r"libcuda\.so[\w.]*: cannot open shared object|couldn't communicate with the NVIDIA driver|"
            r"Failed to initialize NVML: (?!Driver)|"
            r"nvidia-container-cli(?:\.real)?: (?:initialization|device|mount|detection|ldcache|container) error|"
            r"device plugin .{0,80}rpc failed|UnexpectedAdmissionError|calling nvml\.Init|"
            r"could not select device driver|error gathering device information|"
            r"unknown or invalid runtime name: nvidia|"
            r"CUDA_ERROR_(?:SYSTEM_NOT_READY|NOT_INITIALIZED|MPS_\w+)|\bMPS (?:client|server)\b.{0,60}(?:failed|"
            r"not ready)|"
            r"(?:failed|[Ee]rror|NOT_INITIALIZED): initialization error|cuInit: CUDA_ERROR_(?:UNKNOWN|INVALID)|"
            r"No hardware is found",
            unless="dlerror",
        ),
        Line("could not determine TPU accelerator type", weak=True),
        Line(r"cannot access '/dev/vfio", followed="cannot access '/dev/accel"),
        Line(r"cannot access '/dev/accel", followed="cannot access '/dev/vfio"),
        Line(
            r"Backend '\w+' failed to initialize|Unknown backend:? '?(?:gpu|cuda|tpu|rocm)'?|"
            r"Unknown backend (?:gpu|cuda|tpu|rocm)"
        ),
        Line(
            r"(?:CUDA|GPU|TPU|ROCM) backend failed to initialize|CUDA_ERROR_NO_DEVICE(?= \(Set|$)|"
            r"(?:cuda|hip)ErrorNoDevice\b|"
            r"system not yet initialized",
            unless="NCCL (?:WARN|operation)",
        ),
        Line(
            r"No matching devices found for '/device:(?:TPU|GPU)|[Cc]ould not find (?:a |an |any )?(?:GPU|TPU|"
            r"CUDA device|CUDA-capable|accelerator)|"
            r"No (?:TPU|GPU|CUDA|accelerator)s?(?: devices?| chips?)? (?:were |was |is |are )?(?:found|available|"
            r"detected)",
            unless="[Ff]alling back|[Uu]sing (?:the )?CPU|[Cc]ontinuing",
        ),
    ),
    narrow=_where_it_is_missed,
    follows=(
        "hidden_device",
        "accelerator_memory_taken",
        "accelerator_in_use",
        "hidden_device",
        "cuda_library_mismatch",
        "plugin_mismatch",
        "gpu_hardware",
    ),
    fix=(
        "Check the device and its driver on the host (`nvidia-smi`, `ls /dev/accel* /dev/vfio`), "
        "and that the container gets them (--gpus, the device plugin's resource request)."
    ),
    collect="`jaxobs doctor` on that machine.",
    runbook="JaxDeviceLost",
)
