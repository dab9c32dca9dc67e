"""Checks of alerts and recording rules: what a declaration lacks, and which change of it goes unnoticed."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import promql_parser

from helpers.requirements import program
from jaxobs.metrics.catalogue import METRICS
from jaxobs.ops.monitoring import alerting, boards, burn_rates, promql, recordings, shipped_tests
from jaxobs.ops.monitoring.rule_types import Alert, Group, Recording
from jaxobs.ops.monitoring.site import Site
from tools.monitoring_checks import label_flow

SITE = Site()
BOARDS = ("executive", "oncall", "debug", "devices", "serving", "fleet")
KINDS = ("firing", "pending", "healthy", "recovering", "target_gone")
REQUIRED = ("threshold", "operator", "for")
"""Kinds of changes of which each has to make a case fail."""
OF_OBJECTIVES = "JaxSlo"
"""Alerts whose thresholds and windows are not changed: they follow from tables, and `test_burn_rates` looks 1 % above
and below each."""
LONGEST_WINDOW = 6 * 3600
"""Ranges up to this long are changed; cases of days would take minutes."""

_TEMPLATE = re.compile(r"\{\{(.+?)\}\}")
_LABEL = re.compile(r"\$labels\.(\w+)")
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
_COUNTING = ("rate", "irate", "increase", "resets", "changes", "last_over_time", "present_over_time")


def seconds(duration: str) -> float:
    """A duration of Prometheus in seconds."""
    return sum(int(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration))


def duration(value: float) -> str:
    """Seconds as Prometheus writes them."""
    return f"{round(value)}s"


@functools.cache
def counters() -> frozenset[str]:
    """The names of series that only grow."""
    ends = {"counter": ("",), "summary": ("_sum", "_count"), "histogram": ("_sum", "_count", "_bucket")}
    ours = (each.name + end for each in METRICS for end in ends.get(each.kind, ()))
    return frozenset((*ours, *label_flow.agent_metrics(), *label_flow.OTHER_COUNTERS))


@functools.cache
def groups() -> tuple[Group, ...]:
    """The groups of recording rules, that of the objectives included."""
    return (*recordings.groups(), burn_rates.group(alerting.wanted_objectives(SITE)))


@functools.cache
def known_series() -> dict[str, label_flow.Labels]:
    """The labels of each series that there is."""
    rules = [
        (rule.name, promql.filled(rule.expr, SITE.targets()), rule.labels) for each in groups() for rule in each.rules
    ]
    return label_flow.series() | label_flow.recorded(rules)


def sources(expr: str) -> Iterator[str]:
    """The names of the series that an expression asks for."""
    for selector in promql.selectors(expr):
        yield selector.name or next(each.value for each in selector.matchers.matchers if each.name == "__name__")


def mistakes_in_query(expr: str, *, looked_at: bool = False) -> Iterator[str]:
    """Yields the mistakes in PromQL with its gaps filled: unknown series or labels, counters taken as they stand.

    Args:
      looked_at: by a person, who may want to see a counter as it stands.
    """
    try:
        label_flow.labels_of(expr, known_series())
    except ValueError as error:
        yield str(error)
        return
    for selector, name in zip(promql.selectors(expr), sources(expr), strict=True):
        labels = {each.name for each in selector.matchers.matchers}
        if "job" not in labels and not name.startswith(("ALERTS", "slo:")):
            yield f"{name} is asked for without a matcher of the job: {expr}"
    if not looked_at:
        yield from bare_counters(expr)
    if longest(expr) > 15 * 86400:
        yield "looks back further than the 15 days that Prometheus keeps by default"


def longest(expr: str) -> float:
    """The furthest that an expression looks back by ranges and offsets, at most."""
    ranges = [seconds(each) for each in re.findall(r"\[([^\]:]+)", expr)]
    offsets = [seconds(each) for each in re.findall(r"offset (\w+)", expr)]
    return max(ranges, default=0) + max(offsets, default=0)


def bare_counters(expr: str) -> Iterator[str]:
    """Counters as they stand, which fire for ever, and rates of what is no counter.

    As it stands a counter may be where it came into being (`x unless x offset 5m`), where the count itself is a share's
    part (`hits / lookups` of a process's life), where only its presence counts (`count`, on the right of `and` and
    `unless`), and where all that it counts is recent because only young processes are asked.
    """
    young = re.search(r"time\(\) - jax_process_start_timestamp_seconds\S* < \d+", re.sub(r"\{[^}]*\}", "", expr))

    def visit(node: Any, around: str) -> Iterator[str]:
        if isinstance(node, promql_parser.VectorSelector):
            if node.name in counters() and around == "" and not young:
                yield f"the counter {node.name} is taken as it stands"
            if (
                node.name not in counters()
                and ":" not in (node.name or ":")
                and around in ("rate", "irate", "increase")
            ):
                yield f"{around}() of {node.name}, which is no counter"
        elif isinstance(node, promql_parser.MatrixSelector):
            yield from visit(node.vector_selector, around)
        elif isinstance(node, promql_parser.Call):
            for each in node.args:
                yield from visit(each, node.func.name if node.func.name in _COUNTING else around)
        elif isinstance(node, promql_parser.BinaryExpr):
            operator = str(node.op)
            share = operator == "/" or (operator == "unless" and "offset" in node.rhs.prettify())
            present = operator in ("and", "unless")
            yield from visit(node.lhs, around or ("share" if share else ""))
            yield from visit(node.rhs, around or ("share" if share or present else ""))
        elif hasattr(node, "expr"):
            counted = isinstance(node, promql_parser.AggregateExpr) and str(node.op) == "count"
            yield from visit(node.expr, around or ("share" if counted else ""))

    yield from visit(promql.parse(expr), "")


def key(alert: Alert) -> str:
    """An alert's name; with its static labels where several have it, as those of an objective."""
    more = " ".join(value for name, value in alert.labels.items() if name in ("short", "long"))
    return f"{alert.name} {more}".rstrip()


def mistakes(alert: Alert) -> Iterator[str]:
    """Yields sentences about what an alert lacks."""
    yield from _texts(alert)
    yield from _rule(alert)
    yield from _cases(alert)
    yield from _runbook(alert)


def _texts(alert: Alert) -> Iterator[str]:
    if not re.fullmatch(r"[A-Z][^{}]+\.", alert.summary):
        yield "its summary is no capitalised sentence without templates"
    if not _TEMPLATE.search(alert.description):
        yield "its description names nothing: it has no template"
    for template in _TEMPLATE.findall(alert.description):
        if "$value" in template and not re.search(r"humanize|printf", template):
            yield f"{{{{{template}}}}} is not made readable"
    for name, label in alert.labels.items():
        if "{{" in label:
            yield f"its label {name} has a template, so that it is another alert with each value"
    yield from (f"threshold {name}: {text}" for name, each in alert.thresholds.items() for text in _threshold(each))


def _threshold(threshold: Any) -> Iterator[str]:
    if not threshold.least <= threshold.value <= threshold.most:
        yield "its value lies outside its bounds"
    if len(threshold.why) < 20 or not threshold.why.endswith("."):
        yield "its reason is no sentence"


def _rule(alert: Alert) -> Iterator[str]:
    expr = alerting.expression(alert, SITE)
    yield from mistakes_in_query(expr)
    used = set(re.findall(r'(?<!")<([a-z][a-z_0-9]*)>', alert.expr))
    yield from (f"threshold {name} is nowhere in its expression" for name in alert.thresholds.keys() - used)
    if re.match(r"\s*(topk|bottomk|limitk|limit_ratio)", expr):
        yield "an alert on a selection comes and goes with what else there is"
    if not 60 <= seconds(alert.for_) <= 6 * 3600:
        yield f"it waits for {alert.for_}: between 1m and 6h is sensible"
    if "absent(" in expr and seconds(alert.for_) < 2 * seconds(SITE.scrape_interval):
        yield "one scrape that is missed lets it fire"
    board, key = alert.panel
    if board not in BOARDS:
        yield f"there is no dashboard {board}"
    keys = {panel.key for each in boards.boards() if each.name == board for row in each.rows for panel in row.panels}
    if key not in keys:
        yield f"dashboard {board} has no panel {key}"


def _cases(alert: Alert) -> Iterator[str]:
    same = [each for each in alerting.declared(SITE) if each.name == alert.name and each != alert]
    cases = [case for each in (alert, *same) for case in each.cases]
    wanted = {*KINDS, *(("counter_reset",) if counters() & set(sources(alerting.expression(alert, SITE))) else ())}
    yield from (f"no case is of the kind {kind}" for kind in sorted(wanted - {case.kind for case in cases}))
    labels = {name for text in _TEMPLATE.findall(alert.description) for name in _LABEL.findall(text)}
    for case in alert.cases:
        if case.kind in ("pending", "healthy", "recovering") and case.fires and not same:
            yield f"its case {case.kind} expects that it fires"
        if case.kind == "firing" and not case.fires:
            yield "its case firing expects nothing"
        for fired in case.fires:
            yield from (f"{name} is told but not a label of what fires" for name in sorted(labels - set(fired.labels)))


def _runbook(alert: Alert) -> Iterator[str]:
    book = alert.runbook
    for name in ("meaning", "impact", "verify"):
        if len(getattr(book, name)) < 40:
            yield f"its runbook says too little under {name}"
    for name in ("diagnosis", "mitigation", "look_alikes", "evidence"):
        if not getattr(book, name):
            yield f"its runbook says nothing under {name}"
    if not any(step.command for step in book.diagnosis):
        yield "its diagnosis has no command to copy"
    if not any(step.query for step in book.diagnosis):
        yield "its diagnosis has no query to copy"
    for step in book.diagnosis:
        if step.query:
            filled = promql.filled(step.query, SITE.targets(), alerting.thresholds(alert, SITE))
            yield from (f"query of its diagnosis: {text}" for text in mistakes_in_query(filled, looked_at=True))
        if (step.command or step.query) and not step.answers:
            yield f"what the answers mean is not told: {step.do}"
    for text in _all_texts(book):
        if re.search(r"\b(TODO|TBD|FIXME)\b", text):
            yield f"unfinished: {text}"
        named = set(re.findall(r"\bJax[A-Z]\w+", text))
        yield from (f"it points to {name}, which is no alert" for name in sorted(named - _names()))


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(alert.name for alert in alerting.declared(SITE)) | {"JaxRuntimeError"}


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value):
        yield from _all_texts([getattr(value, each.name) for each in dataclasses.fields(value)])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _all_texts(each)


def mistakes_in_recordings() -> Iterator[str]:
    """Yields sentences about mistakes in the recording rules."""
    owner = {rule.name: group.name for group in groups() for rule in group.rules}
    seen: set[tuple[str, str]] = set()
    for group in groups():
        before: set[str] = set()
        if seconds(group.interval) > 300:
            yield f"group {group.name}: what it records is stale before it is recorded again"
        for rule in group.rules:
            yield from (f"{rule.name}: {text}" for text in _recording(rule, before, owner))
            if (rule.name, str(rule.labels)) in seen:
                yield f"{rule.name} is recorded twice"
            seen.add((rule.name, str(rule.labels)))
            before.add(rule.name)


def _recording(rule: Recording, before: set[str], owner: dict[str, str]) -> Iterator[str]:
    expr = promql.filled(rule.expr, SITE.targets())
    for text in mistakes_in_query(expr):
        if "15 days" not in text or "15 days" not in rule.why:
            yield text
    if not re.fullmatch(r"[a-z_]+:[a-z0-9_]+:[a-z0-9_]+", rule.name):
        yield "its name is not level:metric:operations"
    if len(rule.why) < 20 or not rule.why.endswith("."):
        yield "why it is recorded is no sentence"
    for name in sources(expr):
        if name in owner and name not in before:
            yield f"it reads {name}, which is recorded later or in another group"
    level = rule.name.partition(":")[0]
    kept = label_flow.labels_of(expr, known_series())
    if level != "slo" and level_of(level) != set(kept) | set(rule.labels):
        yield f"its level is {level}, but it keeps {', '.join(sorted(kept))}"


def level_of(level: str) -> set[str]:
    """The labels that a level names: `job_instance_function`; labels with an underscore of their own included."""
    labels = {*promql.GROUPING, "instance", *(label for each in METRICS for label in each.labels), "le"}
    labels.update(("alertname", "severity", "pod", "node"))
    found, rest = set(), level
    while rest:
        first = max((label for label in labels if rest == label or rest.startswith(label + "_")), key=len, default=rest)
        found.add(first)
        rest = rest[len(first) + 1 :]
    return found | set(promql.GROUPING) if "job" in found else found


def needed(expr: str) -> list[dict[str, Any]]:
    """The recording rules that an expression rests on, with those that they rest on, as groups."""
    wanted, groups = set(_series_asked(expr)), alerting.recording_groups(SITE)
    kept = []
    for group in reversed(groups):
        rules = []
        for rule in reversed(group["rules"]):
            if not wanted.isdisjoint(((rule["record"], ""), (rule["record"], rule.get("labels", {}).get("slo")))):
                rules.append(rule)
                wanted.update(_series_asked(rule["expr"]))
        kept.append({**group, "rules": rules[::-1]})
    return [group for group in kept[::-1] if group["rules"]]


def _series_asked(expr: str) -> Iterator[tuple[str, str]]:
    """Yields the series that an expression asks for, each with its objective, "" if it asks for all of them."""
    for selector, name in zip(promql.selectors(expr), sources(expr), strict=True):
        equal = (each for each in selector.matchers.matchers if str(each.op) == "MatchOp.Equal")
        yield name, next((each.value for each in equal if each.name == "slo"), "")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A change of an alert that ought to make one of its cases fail; of the kind `none`, the alert as it is."""

    kind: str
    what: str
    expr: str
    for_: str


def mutants(alert: Alert) -> Iterator[Mutant]:
    """The alert as it is; each threshold changed by 20 % (a count by one at least), each operator, time and range."""
    expr, wait = alerting.expression(alert, SITE), seconds(alert.for_)
    values = alerting.thresholds(alert, SITE)
    given = alert.name.startswith(OF_OBJECTIVES)
    yield Mutant("none", "", expr, alert.for_)
    for name, value in () if given else values.items():
        by = max(abs(value) * 0.2, 1.0 if alert.thresholds[name].unit == "count" else 0.0) or 1.0
        for changed in (value - by, value + by):
            filled = promql.filled(alert.expr, SITE.targets(), {**values, name: changed})
            yield Mutant("threshold", f"{name} = {changed:g}", filled, alert.for_)
    hidden = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]', lambda found: "." * len(found[0]), expr)
    flips = {">": "<", "<": ">", ">=": "<", "<=": ">", "==": "!=", "!=": "==", "and": "unless", "unless": "and"}
    for found in re.finditer(r"[<>=!]=|[<>]|\b(?:and|unless)\b", hidden):
        changed = expr[: found.start()] + flips[found[0]] + expr[found.end() :]
        yield Mutant("operator", f"{found[0]} at {found.start()} -> {flips[found[0]]}", changed, alert.for_)
    step = seconds(max((case.interval for case in alert.cases), key=seconds, default="1m"))
    for changed in (wait / 2 // step * step, wait * 2):
        yield Mutant("for", duration(changed), expr, duration(changed))
    for found in () if given else re.finditer(r"(?:\[|offset )((?:\d+[smhdwy])+)", expr):
        span = seconds(found[1])
        for changed in (span / 2, span * 2) if span <= LONGEST_WINDOW else ():
            window = expr[: found.start(1)] + duration(changed) + expr[found.end(1) :]
            yield Mutant("window", f"{found[0]} at {found.start()} -> {duration(changed)}", window, alert.for_)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of promtool for an alert and its mutants."""

    alert: str
    failure: str
    """Output of promtool if the alert itself fails a case."""
    killed: tuple[Mutant, ...]
    survived: tuple[Mutant, ...]


def tried(alerts: list[Alert], folder: Path) -> list[Outcome]:
    """Runs the cases of alerts of one name on them, and on their mutants under other names.

    What the alerts tell is compared case by case. Mutants are many, and each rule costs promtool time in every minute
    that it plays: all of them look at all cases at once, each case with a job of its own, as does the alert as it is.
    """
    rules = [alerting.rule(alert, SITE) for alert in alerts]
    groups = needed("\n or ".join(f"({rule['expr']})" for rule in rules))
    changed = [(alert, each) for alert in alerts for each in mutants(alert)]
    named = [dataclasses.replace(of, name=f"{of.name}Mutant{number}") for number, (of, _) in enumerate(changed)]
    kept = ("keep_firing_for", "labels")
    variants = [
        {name: value for name, value in alerting.rule(mutant, SITE).items() if name in kept}
        | {"alert": mutant.name, "expr": each.expr, "for": each.for_}
        for mutant, (_, each) in zip(named, changed, strict=True)
    ]
    failed: set[str] = set()
    failure = ""
    for interval in sorted({case.interval for alert in alerts for case in alert.cases}):
        units = shipped_tests.units_of(alerts, interval)
        tests = [alerting.test(unit.alert, list(unit.cases), SITE) for unit in units]
        output = tested([*groups, {"name": "alerts", "rules": rules}], tests, folder, interval=interval)
        failure += output if "FAILED" in output or "SUCCESS" not in output else ""
        apart = [shipped_tests.renamed(unit, f"{number}") for number, unit in enumerate(units)]
        test = shipped_tests.with_series(apart, interval, "all cases")
        test["promql_expr_test"] = [
            question
            for mutant in named
            for unit in apart
            for question in shipped_tests.questions(_expected_of(mutant, unit, alone=len(alerts) == 1), SITE)
        ]
        output = tested([*groups, {"name": "mutants", "rules": variants}], [test], folder, interval=interval)
        failed.update(re.findall(r'expr: .*?alertname=\\?"(\w+)', output))
        if any(each.kind == "none" and mutant.name in failed for mutant, (_, each) in zip(named, changed, strict=True)):
            failure += f"With a job of its own for each case:\n{output}"
    fates = [(key(of), mutant.name in failed, each) for mutant, (of, each) in zip(named, changed, strict=True)]
    return [
        Outcome(
            of,
            failure if of == key(alerts[0]) else "",
            tuple(each for owner, killed, each in fates if owner == of and killed),
            tuple(each for owner, killed, each in fates if owner == of and not killed),
        )
        for of in map(key, alerts)
    ]


def _expected_of(mutant: Alert, unit: shipped_tests.Unit, *, alone: bool) -> shipped_tests.Unit:
    """The unit, asked of a mutant: where several alerts have a name, a mutant is judged by what has its own labels."""
    own = alerting.labels(mutant, SITE).items()
    given = alerting.labels(unit.alert, SITE)
    return shipped_tests.Unit(
        mutant,
        tuple(
            dataclasses.replace(
                case,
                kind=case.kind if alone else "healthy",
                fires=tuple(each for each in case.fires if own <= {**given, **each.labels}.items()),
            )
            for case in unit.cases
        ),
    )


def promtool(*arguments: str, folder: Path) -> str:
    """Returns promtool's output, with its exit code if it is neither 0 nor 1."""
    environment = {**os.environ, "GOGC": "400"}  # a tenth less time, for 100 MB
    done = subprocess.run(
        [program("promtool"), *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=1100
    )
    return done.stdout + done.stderr + ("" if done.returncode in (0, 1) else f"\nFAILED: exit {done.returncode}\n")


def tested(groups: list[dict[str, Any]], tests: list[dict[str, Any]], folder: Path, *, interval: str = "1m") -> str:
    """Returns the output of promtool for tests of groups of rules, both written into the folder."""
    order = [group["name"] for group in groups]
    whole = {"rule_files": ["rules.yaml"], "evaluation_interval": interval, "group_eval_order": order, "tests": tests}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("rules.yaml", {"groups": groups}), ("tests.yaml", whole)):
        # JSON is YAML, and takes a tenth of the time.
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return promtool("test", "rules", "tests.yaml", folder=folder)


def tried_all(alerts: list[Alert], folder: Path) -> list[Outcome]:
    """All alerts, two names at a time."""
    by_name: dict[str, list[Alert]] = {}
    for alert in alerts:
        by_name.setdefault(alert.name, []).append(alert)
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda same: tried(same, folder / same[0].name), by_name.values())
        return [outcome for outcomes in found for outcome in outcomes]
