"""The devices' time by a trace of JAX's profiler. What it doesn't say is `None`, never zero."""

from dataclasses import dataclass

CATEGORIES = (
    "matmul", "convolution", "elementwise", "reduce", "copy", "collective", "transfer", "custom", "control", "other",
)  # fmt: skip
"""Categories of operations. `copy` moves data within a device, `transfer` between host and device, `collective` between
devices; `control` is what runs other operations: loops, branches, calls."""

PRODUCTS = frozenset({"matmul", "convolution"})
"""Categories of what multiplies and sums: a data sheet's FLOP/s are theirs."""

BOUNDS = ("compute", "memory", "unknown")
"""Limits of an operation at best, by the peaks of the device's data sheet."""

IDLE_REASONS = (
    "compile", "checkpoint", "transfer", "input", "garbage_collection", "waiting", "dispatch", "unknown",
)  # fmt: skip
"""Activities of the host while a device had nothing to do. `dispatch` is Python or JAX's runtime on the way to the next
program, `waiting` a wait for other devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """A device of a profile."""

    device: str
    """`platform:number`, as in metrics; without a number if a trace doesn't distinguish devices (CPUs, JAX < 0.7)."""
    busy_seconds: float
    """Seconds in which at least one operation ran on the device."""
    busy_ratio: float
    """Share of the window in which at least one operation ran on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTime:
    """All programs of one function."""

    function: str
    """JAX's name for it."""
    device_seconds: float
    """Seconds of the function's operations, added up over devices and streams."""
    calls: int | None
    """Executions, each once however many devices took part; None where the trace doesn't number them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationTime:
    """An operation of one program."""

    operation: str
    """The instruction's name in the optimized program, or the kernel's."""
    function: str | None
    """None where it belongs to no program: a transfer that the host asked for."""
    category: str
    """Category of the operation, one of `CATEGORIES`."""
    scope: str | None
    """JAX's path to it: `jit(train_step)/layer1/dot_general`."""
    source: str | None
    """`file:line` of the program."""
    device_seconds: float
    """Seconds of the operation itself: an operation that runs others has only what those leave."""
    share: float
    """Share of the device time of all operations."""
    count: int
    """How often it ran, on each device."""
    flops: float | None
    """Floating-point operations of all its runs."""
    bytes: float | None
    """Bytes that all its runs read and wrote, if each array moves once."""
    bound: str
    """The limit of the operation at best, one of `BOUNDS`."""
    dtype: str | None = None
    """XLA's name for the number format in which it multiplies, else of its result: `bf16`, `f32`."""
    roofline_ratio: float | None = None
    """Share of its time that it would take at the peaks of the device's data sheet, in FLOP/s or bytes/s."""
    replicated: bool | None = None
    """Whether all devices of its program compute the same; None where the program is not in the trace."""
    widened: bool | None = None
    """True if it computes in float64 although most of what its program is given is narrower; None if the program is not
    in the trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTime:
    """Time in which devices had nothing to do, for one reason."""

    reason: str
    """The host's activity, one of `IDLE_REASONS`."""
    seconds: float
    """Added up over devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """Time of exchanges between devices, added up over devices."""

    seconds: float
    exposed_seconds: float
    """Seconds of them in which nothing else ran on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The devices' time in a trace. `jaxobs profile --json` prints it."""

    window_seconds: float
    """From the first to the last thing that the trace recorded."""
    steps: int | None
    """Steps that the program declared and that ended in the window; None where it declares none."""
    devices: tuple[DeviceTime, ...] = ()
    functions: tuple[FunctionTime, ...] = ()
    """Most time first."""
    operations: tuple[OperationTime, ...] = ()
    """Most time first."""
    idle: tuple[IdleTime, ...] = ()
    """Most time first."""
    collectives: CollectiveTime | None = None
    """None where the trace has no operations."""

    @property
    def category_seconds(self) -> dict[str, float]:
        """Returns the seconds of operations by category, added up over devices, most time first."""
        seconds: dict[str, float] = {}
        for each in self.operations:
            seconds[each.category] = seconds.get(each.category, 0.0) + each.device_seconds
        return {name: seconds[name] for name in sorted(seconds, key=lambda name: -seconds[name]) if seconds[name]}
