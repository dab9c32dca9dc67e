"""NCCL could not set up its communicators."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ANY_END, ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="NCCL could not set up communication between the GPUs",
    impact=ENDED,
    general=1,
    signs=(
        Line(r"NCCL operation ncclComm(?:InitRank\w*|InitAll|Split)\b.{0,80}failed"),
        Line("Unable to load NCCL library"),
        Line("(?:Error while creating shared memory segment|unable to allocate shared memory|/dev/shm/nccl-).{0,160}"),
        Line(
            "NCCL WARN (?:Cuda failure (?!.{0,4}out of memory)|Bootstrap : no socket interface found|"
            "Failed to open libibverbs|Error: network)"
        ),
        Line(r"Duplicate GPU detected|ncclInvalidUsage|nccl(?:CommInit\w*|CommSplit|GetUniqueId)\b.{0,40} failed"),
        Line(
            r"libnccl[\w.-]*\.so[\w.]*: (?:cannot open shared object|undefined symbol)|NCCL version mismatch|"
            r"peer access is not supported"
        ),
    ),
    follows=(ANY_END, "gpu_hardware", "cuda_library_mismatch", "device_out_of_memory"),
    fix=(
        "Read the first NCCL WARN of every process (NCCL_DEBUG=WARN): a larger /dev/shm "
        "(`--shm-size`, an emptyDir of medium Memory), `ulimit -l unlimited`, the right "
        "NCCL_SOCKET_IFNAME, one NCCL version everywhere."
    ),
    collect="The same start with NCCL_DEBUG=WARN on all processes.",
)
