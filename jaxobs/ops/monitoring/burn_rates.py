"""The rules of an objective: how much happened, the share that was bad over each window, and alerts on how fast the
error budget burns.

Windows, budgets and waiting times: the SRE workbook, chapter 5, as sloth and the kubernetes-mixin have them. A pair of
windows fires when both burn faster than `factor`: the long one says that it matters, the short one that it goes on.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from jaxobs.ops.monitoring import promql
from jaxobs.ops.monitoring.objective_types import Example, Objective
from jaxobs.ops.monitoring.rule_texts import guide
from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Given, Group, Recording, Runbook, Step, Threshold

TOTAL = "job_instance_slo:jax_slo_total:increase5m"
BAD = "job_instance_slo:jax_slo_bad:increase5m"
ERRORS = "job_instance_slo:jax_slo_errors:ratio_rate{window}"
REMAINING = "job_instance_slo:jax_slo_budget_remaining:ratio"
TARGET = "job_instance_slo:jax_slo_target:ratio"
EVERY = "all"
"""The value of `instance` in what is recorded of a whole job: dashboards choose by that label."""

_HOURS = {"5m": Decimal(1) / 12, "30m": Decimal("0.5"), "1h": Decimal(1), "2h": Decimal(2), "6h": Decimal(6),
          "1d": Decimal(24), "3d": Decimal(72)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of windows: an alert fires when the error budget burns too fast in both."""

    severity: str
    short: str
    long: str
    percent: Decimal
    """Percentage of the whole period's budget that is spent within the long window."""
    for_: str

    def factor(self, days: int) -> Decimal:
        """Returns how many times faster than allowed the budget burns.

        The factor is percent / 100 * hours of the period / hours of the long window.
        """
        return (self.percent / 100 * days * 24 / _HOURS[self.long]).quantize(Decimal("0.0001"), ROUND_DOWN).normalize()


PAIRS = (
    Pair("critical", "5m", "1h", Decimal(2), "2m"),
    Pair("critical", "30m", "6h", Decimal(5), "15m"),
    Pair("warning", "2h", "1d", Decimal(10), "1h"),
    Pair("warning", "6h", "3d", Decimal(10), "3h"),
)


def days(objective: Objective) -> int:
    """Returns the days of the objective's period."""
    return int(objective.period.removesuffix("d"))


def pairs(objective: Objective) -> list[tuple[Pair, Decimal]]:
    """Returns the pairs of windows with the share of bad at which each fires; none that would take more than all."""
    found = [(pair, (pair.factor(days(objective)) * objective.budget).normalize()) for pair in PAIRS]
    return [(pair, share) for pair, share in found if share < 1]


def group(objectives: list[Objective]) -> Group:
    """Returns the recording rules of all objectives in one group, for they rest on each other."""
    seen = Recording(
        name=promql.SEEN,
        expr=(
            "group by (job, instance) (jax_process_start_timestamp_seconds{@} offset 5m)\n"
            "or group by (job, instance) (jax_process_start_timestamp_seconds{@} > time() - 300)"
        ),
        why="Distinguishes a new counter from one that Prometheus had not scraped yet.",
    )
    training = Recording(
        name=promql.TRAINING, expr=promql.MADE_STEPS,
        why="For goodput: processes that make steps, with no pause of five minutes, from ten minutes of it on.",
    )  # fmt: skip
    return Group(name="slo", rules=(seen, training, *(rule for each in objectives for rule in _recordings(each))))


def _recordings(objective: Objective) -> Iterator[Recording]:
    labels = {"slo": objective.name, "instance": EVERY}
    chosen = f'{{@, slo="{objective.name}"}}'

    def recorded(name: str, expr: str, why: str) -> Recording:
        return Recording(name=name, expr=expr, why=why, labels=labels)

    yield recorded(TOTAL, objective.total, f"All {objective.unit} of the last five minutes.")
    yield recorded(
        BAD, f"({objective.bad})\nor on (job) 0 * {TOTAL}{chosen}",
        f"The {objective.unit} among them that were bad; 0 if there were none.",
    )  # fmt: skip
    for window in _HOURS:
        total, bad = (
            name + chosen if window == "5m" else f"avg_over_time({name}{chosen}[{window}])" for name in (TOTAL, BAD)
        )
        yield recorded(
            ERRORS.format(window=window),
            f"sum without (slo, instance) ({bad})\n/ (sum without (slo, instance) ({total}) > 0)",
            f"The share of bad {objective.unit} over {window}.",
        )  # fmt: skip
    over = objective.period
    yield recorded(
        REMAINING,
        f"1 - sum without (slo, instance) (sum_over_time({BAD}{chosen}[{over}]))\n"
        f"/ (sum without (slo, instance) (sum_over_time({TOTAL}{chosen}[{over}])) > 0)\n"
        f"/ {objective.budget}",
        f"The remaining error budget of {over}; below 0, it is overspent. By default Prometheus keeps only 15 days, "
        "and the figure then covers those.",
    )  # fmt: skip
    yield recorded(
        TARGET, f"sum without (slo, instance) ({TOTAL}{chosen}) * 0 + {objective.target}", "The objective, for panels."
    )


def alerts(objective: Objective) -> list[Alert]:
    """Returns the objective's alerts, one for each pair of windows: one name, one runbook; the first has the cases."""
    return [
        _alert(objective, pair, share, _cases(objective) if number == 0 else ())
        for number, (pair, share) in enumerate(pairs(objective))
    ]


def _alert(objective: Objective, pair: Pair, share: Decimal, cases: tuple[Case, ...]) -> Alert:
    chosen = f'{{@, slo="{objective.name}"}}'
    long, short = (
        f"max without (instance) ({ERRORS.format(window=window)}{chosen}) > <share>"
        for window in (pair.long, pair.short)
    )
    # What is recorded each minute holds each event five times.
    label, counter = objective.culprit
    found = f'{{{{ with culprit }}}} Most of all: {{{{ . | first | label "{label}" }}}}.{{{{ end }}}}'
    enough = f"max without (instance) (sum_over_time({TOTAL}{chosen}[{pair.long}])) / 5 >= <least>"
    return Alert(
        name=objective.alert,
        severity=_severity(objective, pair),
        concern="performance",
        extended=objective.extended,
        summary=f"{objective.title}: the error budget burns too fast.",
        description=(
            f"{{{{ $value | humanizePercentage }}}} of the {objective.unit} of {{{{ $labels.job }}}} were bad in the "
            f"long window of this alert, while {_percent(objective.budget)} are allowed: at this rate, the error "
            f"budget of {objective.period} will not last for the whole period."
            f"{found if label else ''}"
        ),
        culprit=f"topk(1, sum by ({label}) (increase({counter}[1h])) > 0)" if label else "",
        expr=f"{long}\nand\n{short}\nand\n{enough}",
        for_=pair.for_,
        inhibits=objective.inhibits,
        labels=_windows(objective, pair),
        thresholds={
            "share": Threshold(
                value=float(share), unit="ratio", most=1.0,
                why=(
                    f"{promql.number(float(pair.factor(days(objective))))} times the budget of "
                    f"{_percent(objective.budget)}: {pair.percent} % of what {objective.period} allow is spent "
                    f"within {pair.long}."
                ),
            ),
            "least": Threshold(
                value=float(objective.least), unit=objective.unit,
                why=f"Fewer {objective.unit} within {pair.long} are too few to judge.",
            ),
        },
        panel=("executive", "slo_state"),
        texts=Given(_runbook(objective), cases),
    )  # fmt: skip


def _severity(objective: Objective, pair: Pair) -> str:
    return pair.severity if objective.pages else "warning"


def _windows(objective: Objective, pair: Pair) -> dict[str, str]:
    return {**objective.labels, "short": pair.short, "long": pair.long, "exhaustion": _exhausted(objective, pair)}


def _percent(share: Decimal) -> str:
    return f"{promql.number(float(share * 100))} %"


def _exhausted(objective: Objective, pair: Pair) -> str:
    """How long the budget of the period lasts at the pace at which the pair fires."""
    hours = int(days(objective) * 24 / pair.factor(days(objective)))
    return f"{hours // 24}d{hours % 24}h" if hours % 24 else f"{hours // 24}d"


def _runbook(objective: Objective) -> Runbook:
    found = objective.guide or GENERAL
    return Runbook(
        meaning=(
            f"{objective.text()} The objective is {_percent(objective.target)} over {objective.period}. So much "
            "was bad within both windows of this alert (its labels `short` and `long`) that at this rate the whole "
            "error budget is spent in the time of its label `exhaustion`."
        ),
        impact=found.impact,
        diagnosis=(
            Step(
                do="See how fast the budget burns and what remains.",
                query=f'{REMAINING}{{@, slo="{objective.name}"}}',
                answers=(
                    ("Above 0.5", "There is time: find the cause during working hours."),
                    ("Below 0", ("The objective is already missed: stop anything that adds risk, such "
                                "as rollouts.")),
                ),
            ),
            *found.diagnosis,
        ),
        mitigation=found.mitigation,
        look_alikes=found.look_alikes,
        evidence=(
            "A picture of the dashboard `executive` over the long window.",
            *found.evidence,
        ),
        verify=(
            "The share over the short window is below the threshold; the alert ends with it, and the "
            "budget stops falling."
        ),
    )  # fmt: skip


GENERAL = guide(__name__)
"""Guide for an objective without a guide of its own."""


def _cases(objective: Objective) -> tuple[Case, ...]:
    """promtool cases for all pairs at once, since an alert's name is theirs together. Times are in minutes."""
    example = objective.example
    if example is None:
        return ()
    found = [pair for pair, _ in pairs(objective)]
    if any(share * Decimal("1.1") >= example.share for _, share in pairs(objective)):
        return ()  # with a target so low, the example is no trouble
    label, worst = objective.culprit[0], None
    if label:
        worst = re.search(rf'\b{label}="([^"]*)"', " ".join(example.bad))
    job, known = _job(example), _known_after(objective, example)

    def fired(wanted: list[Pair], share: Decimal = example.share) -> tuple[Fired, ...]:
        own = {"job": job, "slo": objective.name}
        return tuple(
            Fired(
                labels={**own, "severity": _severity(objective, pair), **_windows(objective, pair)},
                culprit=worst[1] if worst else "",
                values=(f"{float(share * 100):.4g}%",),
            )
            for pair in wanted
        )

    def series(*parts: tuple[str, int]) -> dict[str, str]:
        minutes = sum(length for _, length in parts)
        start = f'jax_process_start_timestamp_seconds{{job="{job}", instance="a:9464"}}'
        written = {name: _values(name, example, parts) for name in example.good}
        return {**written, start: f"0x{minutes}" + (" stale" if parts[-1][0] == "gone" else "")}

    first = found[0]
    over = _minutes(first.short) + 7
    trouble, cases = series(("bad", 240), ("good", over)), []
    for number, pair in enumerate(found):
        fires_at = known + _minutes(pair.for_)
        kind = "firing" if number else "pending"
        cases.append(Case(kind=kind, series=trouble, at=f"{fires_at - 1}m", fires=fired(found[:number])))
        cases.append(Case(kind="firing", series=trouble, at=f"{fires_at + 1}m", fires=fired(found[: number + 1])))
    # The short window ends it, though the long one is bad still. Rates over five minutes see it begin and end late.
    standing = [pair for pair in found if _minutes(pair.short) > _minutes(first.short)]
    left = example.share * 240 / (240 + over - 1)
    if example.delay:  # what counts from then on counts whole at once
        left = example.share * (242 - example.delay) / (241 - example.delay + over)
    cases.append(Case(kind="recovering", series=trouble, at=f"{240 + over}m", fires=fired(standing, left)))
    enough = known + _minutes(first.for_) + 2
    also = [pair for pair in standing if _minutes(pair.for_) <= _minutes(first.for_) + 2 + over]
    return (
        *cases,
        Case(kind="healthy", series=series(("good", enough + 10)), at=f"{enough + 10}m"),
        Case(
            kind="target_gone", series=series(("bad", enough), ("gone", 1)), at=f"{enough + over}m",
            fires=fired(also),
        ),
        Case(kind="counter_reset", series=series(("good", 20), ("reset", enough)), at=f"{enough + 20}m"),
    )  # fmt: skip


def _values(name: str, example: Example, parts: tuple[tuple[str, int], ...]) -> str:
    """A counter's values in promtool's notation, minute by minute."""
    text, value = [], 0
    for kind, minutes in parts:
        if kind == "gone":
            text.append("stale")
            continue
        step = (example.bad if kind == "bad" else example.good)[name]
        value = 0 if kind == "reset" else value
        text.append(f"{value + step}+{step}x{minutes - 1}")
        value += step * minutes
    return " ".join(text)


def _known_after(objective: Objective, example: Example) -> int:
    """Minutes until enough has happened, all of it bad or good."""
    each_minute, total, minutes = _of(objective, example), 0, 0
    while total / 5 < objective.least:
        total += each_minute * (5 if example.delay else min(minutes + 1, 5))
        minutes += 1
    return example.delay + minutes - 1


def _of(objective: Objective, example: Example) -> int:
    """Returns how much the series that the objective counts rise by in a minute."""
    return sum(rate for name, rate in example.bad.items() if name.partition("{")[0] in objective.total)


def _minutes(duration: str) -> int:
    return int(duration[:-1]) * {"m": 1, "h": 60, "d": 1440}[duration[-1]]


def _job(example: Example) -> str:
    found = re.search(r'job="([^"]*)"', next(iter(example.good)))
    assert found is not None
    return found[1]
