"""A device that is almost full."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "instance": "a:9464", "device": "gpu:0"}


def _device(high_water: str) -> dict[str, str]:
    whose = 'job="train", instance="a:9464", device="gpu:0"'
    return {
        f"jax_device_memory_high_water_bytes{{{whose}}}": high_water,
        f"jax_device_memory_limit_bytes{{{whose}}}": "80000x100" if "stale" not in high_water else "80000x50 stale",
    }


ALERT = Alert(
    name="JaxDeviceMemoryHeadroomLow",
    severity="warning",
    concern="saturation",
    summary="A device has almost no memory left.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) has {{ $value | humanizePercentage }} of "
        "its memory left at its fullest moments."
    ),
    expr="job_instance_device:jax_device_memory_headroom_ratio:min{@} < <share>",
    for_="10m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.05,
            unit="ratio",
            least=0.001,
            most=0.9,
            why="Of what JAX's allocator may hand out: below it a batch that is a little longer, or one more "
            "program, fails.",
        )
    },
    panel=("devices", "memory_headroom"),
    runbook=Runbook(
        meaning=(
            "At its fullest moment of each minute, a device had less than `<share>` of the memory left that JAX's "
            "allocator may hand out. What JAX reserved and does not use counts as left, so this is not its "
            "preallocation."
        ),
        impact=(
            "Nothing yet. The next program that needs more, a longer sequence, an evaluation or a checkpoint that "
            "copies, ends with RESOURCE_EXHAUSTED, and the step, request or run with it."
        ),
        diagnosis=(
            Step(
                do="See whether it is at rest or still rises.",
                query="job_instance_device:jax_device_memory_time_to_full_seconds:deriv1h{@}",
                answers=(
                    (
                        "no answer",
                        "It rests at this height: the program was made to fit closely. Decide whether that is wanted.",
                    ),
                    ("a number", "Seconds until it is full: go on as for JaxDeviceMemoryFillingUp."),
                ),
            ),
            Step(
                do="See what the memory holds: arrays, or the temporaries of programs.",
                query="jax_live_array_bytes{@} / (jax_device_memory_limit_bytes{@} > 0)",
                answers=(
                    ("most of it", "Arrays: parameters, optimizer state, caches, or results that are kept."),
                    ("far less than is in use", "Temporaries: the program itself needs them. See the next step."),
                ),
            ),
            Step(
                do="See which programs need most.",
                query='topk(5, jax_program_memory_bytes{@fn, section="temp"})',
                answers=(("one function leads", "Rematerialise it (`jax.checkpoint`), or use a smaller batch."),),
            ),
            Step(
                do="List the largest groups of arrays, with the lines that made them.",
                command="curl -s http://HOST:9464/api/v1/snapshot | python3 -m json.tool | grep -A 40 "
                "'\"array_groups\"'",
                answers=(
                    (
                        "several equal groups of the size of the model",
                        "Copies: the state is not donated, or an old one is kept.",
                    ),
                    ("a group with a growing count", "A leak: JaxArrayLeak."),
                ),
            ),
        ),
        mitigation=(
            "Use a smaller batch, or shorter sequences, if the run can be restarted from a checkpoint.",
            "Donate the state (`donate_argnums`), so that the old one is not kept beside the new one.",
            "Shard optimizer state and parameters over more devices; rematerialise activations.",
        ),
        look_alikes=(
            (
                "The driver says that 75 % and more are used",
                "`accelerator_memory_used_bytes`, not the allocator's",
                "normal: JAX preallocates",
            ),
            ("Room is left, but in pieces", "the largest free piece is small", "JaxDeviceMemoryFragmented"),
            ("It rises from hour to hour", "the time to full has a value", "JaxDeviceMemoryFillingUp"),
            ("A call failed already", "`jax_out_of_memory_total` rose", "JaxOutOfMemory"),
        ),
        evidence=(
            "The panel over a day, with the deployments.",
            "The largest groups of arrays, from the snapshot.",
            "Batch size, sequence lengths and the number of devices.",
        ),
        verify="The headroom at the fullest moments is above `<share>` for half an hour with evaluations and "
        "checkpoints in it.",
        gpu="`XLA_CLIENT_MEM_FRACTION` decides how much of the GPU the allocator may take: with one process on it, "
        "0.95 leaves less unused than the default of 0.75.",
        tpu="The limit is the chip's HBM less what the runtime reserves; other processes cannot share it.",
    ),
    cases=(
        Case(
            kind="firing",
            at="32m",
            series=_device("40000x19 76400x60"),
            fires=(Fired(labels=_LABELS, values=("4.5%",)),),
        ),
        Case(kind="pending", at="28m", series=_device("40000x19 76400x60")),
        Case(kind="healthy", at="50m", series=_device("75600x60")),
        Case(kind="recovering", at="70m", series=_device("40000x19 76400x29 40000x60")),
        Case(kind="target_gone", at="80m", series=_device("40000x19 76400x29 stale")),
    ),
    needs="accelerator",
)
