"""Compiled programs that pile up."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jax_findings{job="train", instance="a:9464", finding="executable_leak"}'
_LABELS = {"job": "train", "instance": "a:9464", "finding": "executable_leak"}

ALERT = Alert(
    name="JaxExecutableLeak",
    severity="warning",
    concern="capacity",
    summary="Compiled programs accumulate and are never released.",
    description="The number of programs that {{ $labels.instance }} ({{ $labels.job }}) keeps loaded "
    "grows without a bound.",
    expr='jax_findings{@, finding="executable_leak"} > 0',
    for_="15m",
    keep_firing_for="10m",
    panel=("debug", "executables"),
    runbook=Runbook(
        meaning=(
            "jaxobs detects that the number of loaded programs rises steadily and none is released. "
            "Every compiled program is kept: it uses memory for its code, and on GPUs for its graphs."
        ),
        impact=(
            "Memory of the host, and on GPUs of the device, grows until a call runs out of memory; "
            "meanwhile each compilation delays a step or a request."
        ),
        diagnosis=(
            Step(
                do="Ask the process which functions compile, and why.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("`shape`", "Sizes without a bound: pad them. JaxUnboundedShapes has the steps."),
                    (
                        "`new_function`",
                        (
                            "A lambda, closure or partial is re-created and jitted each "
                            "time: jit it once, outside the loop."
                        ),
                    ),
                    ("`static_argument`", "A changing value is static: pass it as an array."),
                ),
            ),
            Step(
                do="See how fast they grow, per hour.",
                query="deriv(jax_executables{@}[1h]) * 3600",
                answers=(
                    ("tens", "Days until it matters."),
                    ("hundreds and more", "Hours: act now."),
                ),
            ),
            Step(
                do="See what they cost on the devices: the memory in use besides the arrays.",
                query="jax_device_memory_in_use_bytes{@} - jax_live_array_bytes{@}",
                answers=(
                    ("it rises with them", "GPUs keep memory for each program: the device fills up."),
                    ("level, or no answer", "Only the host's memory grows."),
                ),
            ),
        ),
        mitigation=(
            "Restart the process at a convenient time: with a persistent cache, the needed programs load quickly.",
            "`jax.clear_caches()` at a quiet moment, such as the end of an epoch, releases all of "
            "them; needed ones are recompiled.",
            "Remove the cause of the compilations, as reported by `jaxobs explain`.",
        ),
        look_alikes=(
            ("Arrays accumulate", "`jax_live_arrays` rises", "JaxArrayLeak"),
            (
                "Many compilations, but the number of programs is level",
                "caches are cleared, or programs replaced",
                "JaxRecompilationStorm",
            ),
            ("A warm-up", "it ends with the last size", "docs/warmup.md"),
        ),
        evidence=(
            "The output of `jaxobs explain http://HOST:9464`.",
            "The panels of programs and of host memory over a day.",
        ),
        verify="The number of programs stays level for an hour of normal work, and the finding is over.",
        gpu="Command buffers (CUDA graphs) keep device memory for each program: "
        "`--xla_gpu_enable_command_buffer=` turns them off.",
    ),
    cases=(
        Case(kind="firing", at="30m", series={_SERIES: "0x9 1x60"}, fires=(Fired(labels=_LABELS),)),
        Case(kind="pending", at="20m", series={_SERIES: "0x9 1x60"}),
        Case(kind="healthy", at="60m", series={_SERIES: "0x60"}),
        Case(kind="healthy", at="60m", series={_SERIES.replace("executable_leak", "array_leak"): "1x60"}),
        Case(kind="recovering", at="55m", series={_SERIES: "0x9 1x30 0x30"}),
        Case(kind="target_gone", at="55m", series={_SERIES: "0x9 1x30 stale"}),
    ),
)
