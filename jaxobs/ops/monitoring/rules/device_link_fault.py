"""Links between devices that have failed."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_TPU = 'accelerator_link_fault_level{job="train", instance="a:9464", device="0", link="tray1.chip3.ici0"}'
_NVLINKS = 'accelerator_nvlink_links{job="train", instance="a:9464", device="GPU-1"}'
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1"}
_TPU_LABELS = {"job": "train", "instance": "a:9464", "device": "0"}

ALERT = Alert(
    name="JaxDeviceLinkFault",
    severity="warning",
    concern="availability",
    summary="Links between devices have failed.",
    description=(
        "{{ $value | humanize }} links of {{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) have "
        "failed."
    ),
    expr=(
        "count without (link) (accelerator_link_fault_level{@} > <level>)\n"
        "or\n"
        "(max_over_time(accelerator_nvlink_links{@}[6h]) - accelerator_nvlink_links{@} > 0)"
    ),
    for_="5m",
    keep_firing_for="15m",
    thresholds={
        "level": Threshold(
            value=5, unit="level", least=0, most=9,
            why=(
                "The runtime's scale: 1 to 5 is a transient fault, 6 to 9 a persistent one, 10 an "
                "unusable link."
            ),
        )
    },
    panel=("devices", "links"),
    runbook=Runbook(
        meaning=(
            "A link between TPU chips has a fault level above `<level>`, or a GPU has fewer working "
            "NVLinks than at some time in the last six hours."
        ),
        impact=(
            "Collectives over these links are slow, or hang: the step time of the whole job rises, "
            "or it stalls. A job that starts on this host may not come up."
        ),
        diagnosis=(
            Step(
                do="See which links are affected, and whether both ends report it.",
                query="(accelerator_link_fault_level{@} > 0) or accelerator_nvlink_links{@}",
                answers=(
                    ("links between the same two devices", "The cable or the trace between them."),
                    ("many links of one device", "That device."),
                    ("links of many devices of one host", "The switch, or the tray."),
                ),
            ),
            Step(
                do="Ask the driver for the state and the error counts of each link.",
                command="nvidia-smi nvlink --status; nvidia-smi nvlink --errorcounters; dmesg -T | grep -i 'xid.*74'",
                answers=(
                    ("`<inactive>`", "The link is down."),
                    ("rising replay or CRC errors", "It works badly, and will fail."),
                    ("everything normal", "The counters were unavailable for a moment: watch it."),
                ),
            ),
            Step(
                do="See what it costs.",
                query="job_instance_loop:jax_step_seconds:median30m{@}",
                answers=(
                    ("higher since then", "Replace the host now."),
                    ("as before", "The program hardly uses the links: it can wait for the next restart."),
                ),
            ),
        ),
        mitigation=(
            "Take the host, or the slice, out of scheduling; move the job using its last checkpoint.",
            "Reset the GPUs of the host together (with the fabric manager running), or restart the host.",
            "If it happens again, have the device, the cable or the tray replaced.",
        ),
        look_alikes=(
            ("Slow steps with healthy links", "no fault level, all NVLinks present", "JaxStraggler"),
            ("The device is gone", "`accelerator_up` is 0", "JaxDeviceLost"),
        ),
        evidence=(
            "Names and levels of the links, from the first query.",
            "`nvidia-smi nvlink --errorcounters` twice, minutes apart.",
            "The log of the fabric manager.",
        ),
        verify="All links are back on the panel, and the step time is back to normal.",
        tpu="A link at 10 makes the slice unusable for jobs that need it: ask for another slice.",
    ),
    cases=(
        Case(kind="firing", at="26m", series={_TPU: "0x19 6x60"}, fires=(Fired(labels=_TPU_LABELS, values=("1",)),)),
        Case(kind="pending", at="23m", series={_TPU: "0x19 6x60"}),
        Case(kind="healthy", at="40m", series={_TPU: "5x60"}),
        Case(kind="firing", at="26m", series={_NVLINKS: "18x19 16x500"}, fires=(Fired(labels=_LABELS, values=("2",)),)),
        Case(
            kind="firing", at="300m",
            series={_NVLINKS: "18x19 16x500"},
            fires=(Fired(labels=_LABELS, values=("2",)),),
        ),
        Case(kind="recovering", at="420m", series={_NVLINKS: "18x19 16x500"}),
        Case(kind="healthy", at="40m", series={_NVLINKS: "18x60"}),
        Case(kind="recovering", at="60m", series={_NVLINKS: "18x19 16x15 18x60"}),
        Case(kind="target_gone", at="70m", series={_NVLINKS: "18x19 16x15 stale"}),
    ),
    needs="accelerator",
)  # fmt: skip
