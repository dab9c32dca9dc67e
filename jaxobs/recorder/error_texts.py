"""Kinds of errors by the texts of exceptions, whatever their type: one table with signs, meaning and advice. No JAX.

The same trouble comes as `JaxRuntimeError`, `ValueError` or `RuntimeError`, under a status that says little: so the
text decides, and the type only where a text of the user's could read alike. Texts: JAX's and XLA's source, the pages
of XLA's error codes, and what users pasted into issues. Of what makes the runtime abort the process nothing is seen
here: there is no exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_TEXT = 8_000
"""Characters that are read."""


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """A kind of error."""

    kind: str
    signs: tuple[str, ...]
    """Regular expressions; one of them is enough."""
    meaning: str
    advice: str
    types: tuple[str, ...] = ()
    """Names of exception types of which it must be one; any where empty."""


KINDS = (
    ErrorKind(
        "out_of_memory", (),  # by `jaxobs.recorder.oom_texts`
        "Memory ran out, on a device or on the host.",
        "See the report of the event `out_of_memory`: what held the memory, and what to do.",
    ),
    ErrorKind(
        "nonfinite", (r"invalid value \((nan|inf)\) encountered in", r"Invalid nan value encountered"),
        "A value turned NaN or infinite, and jax_debug_nans or jax_debug_infs is on.",
        "Fix the operation that is named: a logarithm or root of 0, a division by 0, an overflow in "
        "16 bits, a learning rate too high. Turn the option off afterwards: it fetches every output, "
        "and disables donation.",
        types=("FloatingPointError",),
    ),
    ErrorKind(
        "key_reuse",
        (r"Previously-consumed key", r"is already consumed", r"leads? to key reuse", r"sink \d+ out of range"),
        "A random key was used twice, and jax_debug_key_reuse is on: both uses draw the same numbers.",
        "Split the key before each use: key, subkey = jax.random.split(key).",
        types=("KeyReuseError",),
    ),
    ErrorKind(
        "nccl_missing",
        (r"Unable to load NCCL library", r"cannot open shared object file.{0,300}nccl", r"libnccl\S* not found"),
        "NCCL, which moves data between GPUs, is not installed or not found.",
        "Install the NCCL wheel for this CUDA (nvidia-nccl-cu12 or -cu13; jax[cuda12] includes it), "
        "and check that LD_LIBRARY_PATH names no other one.",
    ),
    ErrorKind(
        "nccl",
        (r"NCCL operation \w+", r"\bncclComm\w+", r"\bnccl\w*(Error|_error)\b", r"NCCL (error|failure)", r"\[NCCL\]"),
        "A collective between GPUs failed in NCCL; the cause is often on another process or in the network.",
        "Run with NCCL_DEBUG=WARN and read the first error of every process, not the last of one. At "
        "the start: /dev/shm too small in the container, `ulimit -l`, the wrong network "
        "(NCCL_SOCKET_IFNAME), different NCCL versions. Later: find the process that died first.",
    ),
    ErrorKind(
        "peer_lost",
        (
            r"tasks? (are|is) unhealthy", r"stopped sending heartbeats", r"another task died",
            r"JAX distributed service detected fatal errors", r"Task with incarnation id \S+ is not connected",
            r"heartbeat timeout", r"Connection reset by peer.{0,300}(gloo|coordination)", r"Connection closed by peer",
            r"Socket closed.{0,300}(gloo|coordination)",
            r"gloo.{0,300}(Connection|Socket|Read error|Write error|timed? ?out)",
            r"leader .{0,300} (is|has) (gone|died)", r"coordination service (has )?stopped",
        ),
        "Another process of the job died or left; this one only received the news.",
        "Find the process that ended first and read its log and exit code: out of memory, preemption or an exception "
        "there. This process is a victim.",
    ),
    ErrorKind(
        "preemption", (r"Preemption sync barrier failed", r"Preemption notice"),
        "The machine is being preempted, or received SIGTERM, which jax.distributed holds back until "
        "all processes have reached a sync point.",
        "Check jax.experimental.multihost_utils.reached_preemption_sync_point in each step, and "
        "save. A process that does not is killed with SIGKILL.",
    ),
    ErrorKind(
        "distributed_order",
        (
            r"jax\.distributed\.initialize\(\) must be called before",
            r"distributed\.initialize should only be called once",
            r"before any JAX (calls|computations)",
        ),
        "jax.distributed.initialize was called too late, or twice: the backend was already initialized.",
        "Call it first, before any library that creates an array or queries devices on import.",
    ),
    ErrorKind(
        "distributed_start",
        (
            r"Wait_for_all_tasks_to_register", r"cluster registration failed", r"PjRT_Client_Connect",
            r"CoordinationService/RegisterTask", r"failed to connect to (coordinator|all addresses)",
            r"coordinator_address should be defined", r"Barrier timed out",
            r"DEADLINE_EXCEEDED.{0,300}(coordination|distributed|barrier|GetKeyValue|topolog)",
        ),
        "The processes of the job did not find each other in time.",
        "See which tasks the text lists as missing, and whether they were started with the same "
        "coordinator address and number of processes and can reach it. For slow starts: "
        "initialization_timeout.",
    ),
    ErrorKind(
        "programs_differ",
        (
            r"An unexpected (leader|peer) shows up in the launch group", r"INCONSISTENT_TPU_PROGRAM",
            r"inconsistent (TPU programs|HLO module compilation)", r"share_binary_between_hosts",
        ),
        "The processes of the job run different programs, and wait for each other forever.",
        "Use the same image, library versions, XLA_FLAGS and LIBTPU_INIT_ARGS everywhere, and feed "
        "the same shapes in the same order on every process; compare the fingerprints of their "
        "`compilation` events.",
    ),
    ErrorKind(
        "inputs_differ", (r"Expected: .{0,300}; got: ",),
        "A value that must be the same on all processes is not.",
        "Look at how each process computes it: seeds, the order of files, the shard of the data.",
        types=("AssertionError",),
    ),
    ErrorKind(
        "hang",
        (
            r"Megascale detects a hang", r"HANG_DETECTED",
            r"may be stuck\. Expected \d+ threads to join the rendezvous",
            r"rendezvous.{0,300}(timed out|Termination timeout)", r"Termination timeout for .{0,300} exceeded",
            r"HangWatchdog",
        ),
        "Processes or threads of the job waited for each other until a watchdog gave up.",
        "Look for the one that is missing in the collective: see its last step and its stack. "
        "Different programs or input on one process, and a slow or dead one, look the same from here.",
    ),
    ErrorKind(
        "device_halted",
        (r"Accelerator device halted prematurely", r"halted unexpectedly at tag", r"TPU core halt"),
        "A chip stopped in the middle of a program: hardware, network, power, or a kernel that did something invalid.",
        "`observed errors are: [Hardware]`, `[Network]` or `[Power]` in the text: drain the host. "
        "`[User]` or a bounds check: fix the Pallas kernel. Otherwise report it with the HLO.",
    ),
    ErrorKind(
        "device_fault",
        (
            r"CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_FAILED|MISALIGNED_ADDRESS|ASSERT|ILLEGAL_INSTRUCTION|ECC_UNCORRECTABLE"
            r"|HARDWARE_STACK_ERROR|DEINITIALIZED|UNKNOWN)",
            r"an illegal memory access was encountered", r"unspecified launch failure",
            r"uncorrectable (NVLink|ECC) error",
            r"STREAM_CAPTURE_INVALIDATED", r"CUDA error: ",
        ),
        "A kernel failed on the GPU, which cannot be used by this process any more.",
        "Look for an Xid in the driver's log (`accelerator_xid_errors_total`): 48, 63, 64, 79, 94 "
        "and 95 are hardware. Otherwise suspect custom and Pallas kernels; "
        "--xla_gpu_enable_command_buffer= (empty) rules out CUDA graphs.",
    ),
    ErrorKind(
        "library_version",
        (
            r"DNN library initialization failed", r"Loaded runtime CuDNN library", r"Outdated \w+ installation found",
            r"CUDA version check failed", r"Mismatched PJRT plugin", r"Unexpected PJRT_\w+ size",
            r"jaxlib version \S+ is (newer|older) than", r"jaxlib is version", r"but JAX was built against version",
        ),
        "Incompatible libraries: JAX and jaxlib, a plugin, CUDA, cuDNN.",
        "Install matching versions of jax, jaxlib and the plugin, and check that no other CUDA or "
        "cuDNN comes first (LD_LIBRARY_PATH, another framework imported before JAX).",
    ),
    ErrorKind(
        "backend_start",
        (
            r"Unable to initialize backend", r"backend failed to initialize",
            r"no supported devices found for platform",
            r"The TPU is already in use by", r"libtpu\S* already in use", r"Failed to initialize TPU system",
            r"Unknown backend", r"failed call to cu(Init|DevicePrimaryCtxRetain)",
        ),
        "JAX could not start the requested backend.",
        "See what holds the device (nvidia-smi, the pid in the text), the driver, and JAX_PLATFORMS. "
        "A stale libtpu lock file may be in the temporary directory.",
    ),
    ErrorKind(
        "remote_array", (r"spans non-addressable \(non process local\) devices",),
        "The program requested the whole of an array that other processes hold parts of.",
        "Fetch array.addressable_shards, or gather it on all processes: multihost_utils.process_allgather.",
    ),
    ErrorKind(
        "deleted_array", (r"(Array|Buffer) has been deleted", r"buffer.{0,300}(deleted or donated|donated or deleted)"),
        "An array was used after it had been donated or deleted.",
        "Use what the call returned instead, or do not donate that argument (donate_argnums).",
    ),
    ErrorKind(
        "program_mismatch", (r"Executable\(\S*\) expected parameter \d+ of size", r"got buffer with incompatible size"),
        "A compiled program got an argument of another size or layout than it was compiled for.",
        "Recompile it: a checkpoint, the flags or the topology changed since it was compiled or exported.",
    ),
    ErrorKind(
        "cache_inconsistent", (r"Persistent compilation cache inconsistency",),
        "Compiling a program twice gave different results, and jax_compilation_cache_check_contents is on.",
        "Look for what differs from one compile to the next (autotuning, callbacks), or turn the check off.",
    ),
    ErrorKind(
        "transfer_disallowed", (r"Disallowed (host-to-device|device-to-host|device-to-device) transfer",),
        "A transfer happened that jax.transfer_guard forbids.",
        ("Move the value beforehand with jax.device_put, or allow the transfer around this line with "
        "jax.transfer_guard."),
    ),
    ErrorKind(
        "retraced", (r"re-tracing function .{0,300} 'no_tracing' is set",),
        "A function was traced again within jax.no_tracing.",
        "See the `compilation` events for what changed in the call.",
    ),
    ErrorKind(
        "tracer",
        (
            r"Abstract tracer value encountered", r"Attempted boolean conversion of traced array",
            r"method was called on traced array", r"__index__\(\) method was called on traced array",
            r"Shapes must be 1D sequences of concrete values", r"Encountered an unexpected tracer", r"leaked trac",
            r"Array boolean indices must be concrete", r"[Ii]ntermediate value .{0,300} leaked|has escaped",
        ),
        "A value that is only known when the program runs was needed while it was traced, or left its trace.",
        "Use jax.lax.cond, switch or while_loop instead of Python's if and while, or mark the "
        "argument as static (static_argnames). A leaked tracer was stored in a global or an "
        "attribute: return it instead.",
    ),
    ErrorKind(
        "unhashable_static", (r"Non-hashable static arguments", r"Static argument .{0,300} is non-hashable"),
        "An argument that is marked static cannot be hashed.",
        "Pass a tuple instead of a list, give the type `__hash__` and `__eq__`, or pass it as an array.",
    ),
    ErrorKind(
        "shapes_disagree",
        (
            r"(Incompatible shapes for broadcasting|incompatible shapes)",
            r"requires contracting dimensions to have the same",
            r"Got incompatible shapes", r"(mul|add|sub|div) got incompatible shapes",
        ),
        "Arrays with incompatible shapes met in one operation.",
        "See the program's line in the traceback: it names the operation.",
        types=("TypeError", "ValueError"),
    ),
)  # fmt: skip
"""The first whose signs are found counts."""

BY_NAME = {each.kind: each for each in KINDS}
_PATTERNS = tuple((each, re.compile("|".join(each.signs), re.DOTALL)) for each in KINDS if each.signs)


def recognise(types: tuple[str, ...], text: str) -> ErrorKind | None:
    """Returns the kind of an error by the names of its type and bases and its text; None if it is unknown."""
    text = text[:MOST_TEXT]
    for each, pattern in _PATTERNS:
        if (not each.types or any(name in types for name in each.types)) and pattern.search(text):
            return each
    return None
