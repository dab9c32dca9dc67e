"""A device whose free memory lies in small pieces."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "instance": "a:9464", "device": "gpu:0"}


def _device(largest: str, in_use: str = "800x120", limit: str = "1000x120") -> dict[str, str]:
    whose = 'job="train", instance="a:9464", device="gpu:0"'
    return {
        f"jax_device_memory_largest_free_block_bytes{{{whose}}}": largest,
        f"jax_device_memory_in_use_bytes{{{whose}}}": in_use,
        f"jax_device_memory_limit_bytes{{{whose}}}": limit,
    }


ALERT = Alert(
    name="JaxDeviceMemoryFragmented",
    severity="warning",
    concern="saturation",
    summary="The free memory of a device is fragmented.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) cannot allocate {{ "
        "$value | humanizePercentage }} of its free memory in one piece."
    ),
    expr=(
        "1 - jax_device_memory_largest_free_block_bytes{@}\n"
        "  / (jax_device_memory_limit_bytes{@} - jax_device_memory_in_use_bytes{@} > 0)\n"
        "> <share>\n"
        "and jax_device_memory_in_use_bytes{@} / (jax_device_memory_limit_bytes{@} > 0) > <used>"
    ),
    for_="30m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.75,
            unit="ratio",
            least=0.1,
            most=0.999,
            why="A fresh process has most of its free memory in one piece; with a quarter left, "
            "programs that should fit fail.",
        ),
        "used": Threshold(
            value=0.7,
            unit="ratio",
            least=0.0,
            most=0.99,
            why="While much memory is free, the pieces are large enough however many there are.",
        ),
    },
    panel=("devices", "fragmentation"),
    runbook=Runbook(
        meaning=(
            "More than `<used>` of a device's memory is in use, and less than a quarter of the rest "
            "can be allocated in one piece: more than `<share>` of the free memory is in smaller "
            "pieces between live arrays."
        ),
        impact=(
            "A program that needs one large buffer fails with RESOURCE_EXHAUSTED although the total "
            "free memory would suffice, often at an evaluation, a checkpoint or a longer batch."
        ),
        diagnosis=(
            Step(
                do="See how it came about.",
                query="jax_device_memory_largest_free_block_bytes{@}",
                answers=(
                    (
                        "it falls slowly, over hours",
                        "Buffers of many sizes come and go: look at shapes and at serving traffic.",
                    ),
                    (
                        "it fell in one step",
                        ("Something was allocated in the middle: a second model, an evaluation, a restored state."),
                    ),
                    (
                        "small from the start",
                        "The allocator may still grow: see the last row of the table of look-alikes.",
                    ),
                ),
            ),
            Step(
                do="See how many arrays there are, and how many program sizes.",
                query="jax_live_arrays{@}",
                answers=(
                    ("tens of thousands", "Many small arrays: combine them, or keep them on the host."),
                    ("a few hundred", "Sizes of batches or sequences: see `jax_executables`."),
                ),
            ),
            Step(
                do="Look at the groups of arrays.",
                command="curl -s http://HOST:9464/api/v1/snapshot | python3 -m json.tool | grep -A 40 "
                "'\"array_groups\"'",
                answers=(("groups of many shapes with a few arrays each", "Pad to fewer sizes."),),
            ),
        ),
        mitigation=(
            "Restart the process at the next checkpoint: a fresh pool is in one piece.",
            "Preallocate the pool (`XLA_PYTHON_CLIENT_PREALLOCATE=true`, the default), and allocate "
            "large, long-lived arrays first.",
            "Pad to fewer sizes, and donate what is replaced.",
        ),
        look_alikes=(
            ("No memory is free at all", "the headroom is below a twentieth", "JaxDeviceMemoryHeadroomLow"),
            ("A call has already failed", "`jax_out_of_memory_total` rose", "JaxOutOfMemory"),
            (
                "A pool that grows on demand",
                "`XLA_PYTHON_CLIENT_PREALLOCATE=false`: the largest piece is of the memory taken so far",
                "nothing: disable this alert there",
            ),
        ),
        evidence=(
            "The panel over the life of the process.",
            "The settings of the allocator: `env | grep XLA_`.",
        ),
        verify="After the restart, the largest free piece is most of the free memory, and stays so "
        "for as long as the previous run lasted.",
        gpu="The `cuda_async` allocator (`XLA_PYTHON_CLIENT_ALLOCATOR`) fragments less, but is slower if sizes vary.",
        tpu="A program is loaded at the bottom of the memory and needs one piece there: an error "
        "with `Attempting to reserve ... at the bottom of memory` means that.",
    ),
    cases=(
        Case(
            kind="firing",
            at="55m",
            series=_device("150x19 40x100"),
            fires=(Fired(labels=_LABELS, values=("80%",)),),
        ),
        Case(kind="pending", at="45m", series=_device("150x19 40x100")),
        Case(kind="healthy", at="55m", series=_device("70x120")),
        Case(kind="healthy", at="55m", series=_device("40x120", "600x120")),
        Case(kind="healthy", at="55m", series=_device("0x120", "1000x120")),
        Case(kind="recovering", at="90m", series=_device("150x19 40x40 150x60")),
        Case(
            kind="target_gone",
            at="90m",
            series=_device("150x19 40x40 stale", "800x60 stale", "1000x60 stale"),
        ),
    ),
    needs="accelerator",
)
