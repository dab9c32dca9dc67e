"""NCCL could not set up its communicators."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, Knowledge, Line

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
            "Failed to open libibverbs|Error: network)",
            unless_followed="Init COMPLETE",
        ),
        Line(
            r"NCCL WARN (?:\S+ )?(?:Bootstrap\b|Error while \w+ shared memory|(?:Error: )?[Ff]ailed to (?:extend|"
            r"create|open) "
            r"\S*(?:shm|shared memory)|Failed to bind NVLink|MNNVL|No transport found|Could not find|No path computed|"
            r"P2P is disabled between|Failed to initialize any NET|TOPO/NET|XML |nvml\w+\(|cudaArch \d|NCCL library is|"
            r"NET/\w+ ?: (?:No IP interface|no interface|No usable|Unable to|unable to|"
            r"Attempted to connect incompatible)|"
            r"NET/OFI .{0,80}(?:[Uu]nable|[Ff]ailed|[Nn]o |[Cc]ould(?:n't| not))|"
            r"no device found|Multiple Ranks are using|failed to peer|"
            r"cudaIpc\w+ failed|Mismatched NCCL version|Detected mixed local|gdr_\w+\(|CUDA Driver version found|"
            r"(?:\[Service thread\]|\[Proxy Service|\[Proxy service).{0,80}(?:[Ff]ail|[Cc]ould not|[Ee]rror|"
            r"[Tt]oo many)|"
            r"UDS: |Invalid NCCL_|Unable to open lib|Thread creation failed|Failed to open (?:lib|/))",
            unless_followed="Init COMPLETE",
        ),
        Line(
            r"ibv_(?:reg_mr|create_\w+|open_device)\w*\(?\)? failed .{0,40}(?:Cannot allocate|Operation not permitted)|"
            r"Call to ibv_(?:create|reg|alloc|open)_\w+ failed"
        ),
        Line(r"log entry \(may be unrelated\) '(?:Error while|Could not find|Failed to open|No |Bootstrap|MNNVL|nvml)"),
        Line(r"Duplicate GPU detected|ncclInvalidUsage|nccl(?:CommInit\w*|CommSplit|GetUniqueId)\b.{0,40} failed"),
        Line(
            r"libnccl[\w.-]*\.so[\w.]*: (?:cannot open shared object|undefined symbol)|NCCL version mismatch|"
            r"Mismatched NCCL version|"
            r"peer access is not supported|PEER_ACCESS_UNSUPPORTED|peer mapping resources exhausted"
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
