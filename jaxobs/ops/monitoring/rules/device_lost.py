"""A device that does not answer its driver."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'accelerator_up{job="train", instance="a:9464", device="GPU-1"}'
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1"}

ALERT = Alert(
    name="JaxDeviceLost",
    severity="critical",
    concern="availability",
    summary="A device does not respond to its driver.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) does not respond: "
        "`accelerator_up` is {{ $value | humanize }}."
    ),
    expr="accelerator_up{@} == 0",
    for_="2m",
    keep_firing_for="5m",
    panel=("oncall", "device_faults"),
    runbook=Runbook(
        meaning=(
            "The driver reports that the device is lost, or a query to it does not return. Its other "
            "gauges are absent meanwhile. The process is alive, because it reports this."
        ),
        impact=(
            "What runs on it has ended, ends with an error, or hangs. In a job with collectives, all "
            "other processes wait for this one: no step is made."
        ),
        diagnosis=(
            Step(
                do="See whether other devices of the host are gone too.",
                query="accelerator_up{@} == 0",
                answers=(
                    ("one device", "That device: continue."),
                    ("all devices of a host", "The driver or the host: restart it."),
                ),
            ),
            Step(
                do="Ask the driver on the host, with a time limit, because the command may hang.",
                command="timeout 20 nvidia-smi; dmesg -T | grep -iE 'xid|fallen off|nvrm' | tail -n 20",
                answers=(
                    (
                        "`GPU is lost` or Xid 79",
                        ("It has fallen off the bus: only a restart of the host, or a power cycle, "
                        "brings it back."),
                    ),
                    ("no answer within 20 s", "The driver hangs: restart the host."),
                    ("it answers", "It hung for a moment: see whether steps continue."),
                ),
            ),
            Step(
                do="See whether the job still makes steps.",
                query="sum by (job, instance) (rate(jax_steps_total{@}[5m]))",
                answers=(
                    ("all 0", "Stalled: stop it and restart it without this host."),
                    ("above 0", "The program does not use the device, or the device responds again."),
                ),
            ),
        ),
        mitigation=(
            "Take the host out of scheduling.",
            ("Stop the job, with SIGKILL after the grace period, and restart it on other hosts from "
            "its last checkpoint."),
            "Restart the host. If the device is lost again, have it replaced.",
        ),
        look_alikes=(
            ("The process is gone as well", "`up` is 0", "JaxTargetDown"),
            ("It responds but causes errors", "`accelerator_up` is 1", "JaxDeviceXidErrors"),
            (
                "Fewer devices than normal after a start",
                "no series of the device at all",
                "the scheduler, or `CUDA_VISIBLE_DEVICES`",
            ),
        ),
        evidence=(
            "`dmesg -T` of the host.",
            "`nvidia-bug-report.sh`, if the driver still answers.",
            "Temperature, power and Xids before.",
        ),
        verify="`accelerator_up` is 1 for all devices of the host, and the job makes steps.",
        gpu="The common causes of Xid 79 are power, heat, the riser and the slot.",
        tpu="TPUs are queried through their runtime: 0 can also mean that the runtime hangs.",
    ),
    cases=(
        Case(kind="firing", at="23m", series={_SERIES: "1x19 0x60"}, fires=(Fired(labels=_LABELS, values=("0",)),)),
        Case(kind="pending", at="21m", series={_SERIES: "1x19 0x60"}),
        Case(kind="healthy", at="40m", series={_SERIES: "1x60"}),
        Case(kind="recovering", at="45m", series={_SERIES: "1x19 0x10 1x60"}),
        Case(kind="target_gone", at="60m", series={_SERIES: "1x19 0x10 stale"}),
    ),
    needs="accelerator",
)  # fmt: skip
