"""A device that is almost full."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

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
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) has {{ $value | "
        "humanizePercentage }} of its memory left at peak use."
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
            why="As a share of what JAX's allocator may use: with less, a slightly longer batch or "
            "one more program fails.",
        )
    },
    panel=("devices", "memory_headroom"),
    runbook=Runbook(
        meaning=(
            "At the peak of each minute, a device had less than `<share>` of the memory left that "
            "JAX's allocator may use. Memory that JAX reserved but does not use counts as left, so "
            "preallocation does not trigger this alert."
        ),
        impact=(
            "None yet. The next program that needs more memory, a longer sequence, an evaluation or "
            "a checkpoint that copies fails with RESOURCE_EXHAUSTED, and the step, request or run "
            "fails with it."
        ),
        diagnosis=(
            Step(
                do="See whether it is level or still rises.",
                query="job_instance_device:jax_device_memory_time_to_full_seconds:deriv1h{@}",
                answers=(
                    (
                        "no answer",
                        "It is level: the program fits only just. Decide whether that is intended.",
                    ),
                    ("a number", "Seconds until it is full: continue as for JaxDeviceMemoryFillingUp."),
                ),
            ),
            Step(
                do="See what the memory holds: arrays, or temporaries of programs.",
                query="jax_live_array_bytes{@} / (jax_device_memory_limit_bytes{@} > 0)",
                answers=(
                    ("most of it", "Arrays: parameters, optimizer state, caches, or retained results."),
                    ("far less than is in use", "Temporaries: the program itself needs them. See the next step."),
                ),
            ),
            Step(
                do="See which programs need most.",
                query='topk(5, jax_program_memory_bytes{@fn, section="temp"})',
                answers=(("one function dominates", "Rematerialize it (`jax.checkpoint`), or use a smaller batch."),),
            ),
            Step(
                do="List the largest groups of arrays, with the lines that created them.",
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
            "Donate the state (`donate_argnums`), so that the old one is not kept along with the new one.",
            "Shard optimizer state and parameters over more devices; rematerialize activations.",
        ),
        look_alikes=(
            (
                "The driver reports 75 % or more in use",
                "`accelerator_memory_used_bytes`, not the allocator's",
                "normal: JAX preallocates",
            ),
            ("Memory is left, but fragmented", "the largest free piece is small", "JaxDeviceMemoryFragmented"),
            ("It rises from hour to hour", "the time to full has a value", "JaxDeviceMemoryFillingUp"),
            ("A call has already failed", "`jax_out_of_memory_total` rose", "JaxOutOfMemory"),
        ),
        evidence=(
            "The panel over a day, with the deployments.",
            "The largest groups of arrays, from the snapshot.",
            "Batch size, sequence lengths and the number of devices.",
        ),
        verify="The headroom at peak use is above `<share>` for half an hour that includes "
        "evaluations and checkpoints.",
        gpu="`XLA_CLIENT_MEM_FRACTION` decides how much of the GPU the allocator may use: with one "
        "process per GPU, 0.95 leaves less unused than the default of 0.75.",
        tpu="The limit is the chip's HBM minus what the runtime reserves; other processes cannot share it.",
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
