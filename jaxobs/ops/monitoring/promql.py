"""PromQL with gaps: fills them, and reads with a parser what an expression asks for.

Histograms are written once for both of their kinds: `quantile_of(0.99, jax_step_seconds{@}, job, instance)` is filled
as `histogram_quantile` over the classic buckets or over the native histogram. So are `buckets_of`, `sum_of`, `count_of`
and `mean_of`, without the first argument. The window is `$__rate_interval`, or is behind the selector: `{@}[5m]`.
`rise_of(jax_nonfinite_total{@}, 30m)` is what a counter rose by, a series that came into being included.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from string import Template
from typing import Any

from jaxobs.base.errors import MissingExtraError

MOST_TEXT = 20_000
MOST_NESTED = 1_000
_TARGETS = re.compile(r"([\w:]*)\{@(fn)?(,\s*)?")
_MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"(?:[^"\\]|\\.)*"')
GROUPING = ("cluster", "namespace", "job")
"""Labels that distinguish jobs. An expression says `job` for all of them in `by` and in `on`; a label that
targets do not have is empty on both sides, so that nothing changes for them."""
_BY_JOB = re.compile(r"\b(by|on)(\s*)\(([^()]*)\)")
_HISTOGRAM = re.compile(
    r"\b(quantile|buckets|sum|count|mean)_of\(\s*(?:([\d.]+),\s*)?([\w:]+)(\{[^}]*\})(\[[^\]]+\])?((?:,\s*\w+)*)\s*\)"
)
_RISE = re.compile(r"\brise_of\(([^{}]+\{[^}]*\}), (\d+)m\)")
_THRESHOLD = re.compile(r'(?<!")<([a-z][a-z_0-9]*)>')  # `"<eager>"` is a function's name


def filled(
    expr: str,
    matchers: str,
    thresholds: Mapping[str, float] | None = None,
    *,
    function: str = "",
    native: bool = False,
    grouping: Sequence[str] = GROUPING,
) -> str:
    """Returns the expression with the matchers of targets and the thresholds put in.

    Args:
      expr: has `{@}` in each selector; `{@fn}` where a function is chosen as well.
      matchers: as `job=~".+"`; may be empty.
      thresholds: by name, for each `<name>`.
      function: the matcher of a function, as `function=~"train.*"`.
      native: histograms are native ones.
      grouping: the labels that stand for `job` in `by (job)` and `on (job)`.

    Raises:
      KeyError: a threshold is not given.
    """
    # What else chooses targets chose them before they were recorded.
    kept = ", ".join(each[0] for each in _MATCHER.finditer(matchers) if each[1] in (*grouping, "instance"))

    def targets(gap: re.Match[str]) -> str:
        chosen = kept if ":" in gap[1] else matchers
        wanted = ", ".join(each for each in (chosen, function if gap[2] else "") if each)
        return gap[1] + "{" + wanted + (", " if gap[3] and wanted else "")

    with_histograms = _HISTOGRAM.sub(lambda gap: _histogram(gap, native), _RISE.sub(_rise, expr))
    with_targets = _TARGETS.sub(targets, with_histograms).replace("{}", "")
    with_targets = _BY_JOB.sub(lambda gap: f"{gap[1]}{gap[2]}({by_job(gap[3], grouping)})", with_targets)
    return _THRESHOLD.sub(lambda gap: number((thresholds or {})[gap[1]]), with_targets)


def by_job(labels: str, grouping: Sequence[str] = GROUPING) -> str:
    """Returns a list of labels with those that distinguish jobs instead of `job`."""
    found = re.findall(r"\w+", labels)
    if "job" in found:
        place = found.index("job")
        found[place : place + 1] = [each for each in grouping if each == "job" or each not in found]
    return ", ".join(found)


SEEN = "job_instance:jax_seen:bool"
"""Recorded: processes whose counters were looked at five minutes ago, or that began since."""


PROBES = "(|.*/)(health|healthz|livez|readyz|ready|live|ping|metrics)/?"
"""Routes that are asked by machines to see whether a process answers: no user waits for them."""

TRAINING = "job_instance:jax_training:bool"
"""Recorded: processes that make steps, with no pause of five minutes."""

MADE_STEPS = (
    "group by (job, instance) (increase(jax_steps_total{@}[5m]) > 0)\n"
    "and on (job, instance) increase(jax_steps_total{@}[5m] offset 5m) > 0\n"
    "and on (job, instance) jax_steps_total{@} offset 10m > 0"
)
"""Steps before ten minutes ago, and in both five minutes since."""

RUN = "job_instance_run_id:jax_run:bool"
"""Recorded: the run of each process: its `run_id`, or the address of a process that has none, which is a run alone."""


def parts(own: Mapping[str, str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns texts for `${name}` in expressions: this module's constants, more, and a file's own, in their order."""
    known = {name: value for name, value in globals().items() if isinstance(value, str)} | dict(more or {})
    for name, text in own.items():
        known[name] = Template(text).safe_substitute(known)
    return known


def increase(selector: str, window: str = "5m") -> str:
    """Returns an expression for how much counters rose, those that came into being meanwhile included.

    `increase` takes the first sample of a series for where it began, so that an event that brings a new series, as a
    first compilation does, is not one. What came into being counts whole, unless it is Prometheus that came late.
    """
    return (
        f"(({selector} unless {selector} offset {window}) and on (job, instance) {SEEN}{{@}}\n"
        f"  or increase({selector}[{window}]))"
    )


def _rise(gap: re.Match[str]) -> str:
    """How much a counter rose; a new series counts whole if its process was scraped before, or is new."""
    selector, minutes, start = gap[1], int(gap[2]), "jax_process_start_timestamp_seconds{@}"
    watched = f"({start} offset {minutes}m or (time() - {start} < {minutes * 60}))"
    return (
        f"(({selector} unless {selector} offset {minutes}m) and on (job, instance) {watched})\n"
        f"or increase({selector}[{minutes}m])"
    )


def _histogram(gap: re.Match[str], native: bool) -> str:
    what, quantile, metric, selector, window, rest = gap.groups()
    labels = re.findall(r"\w+", rest)
    window = window or "[$__rate_interval]"

    def total(suffix: str, *more: str) -> str:
        by = ", ".join([*more, *labels])
        return f"sum{f' by ({by})' if by else ''} (rate({metric}{suffix}{selector}{window}))"

    if what == "quantile":
        return f"histogram_quantile({quantile}, {total('') if native else total('_bucket', 'le')})"
    if what == "buckets":
        return total("") if native else total("_bucket", "le")
    added = f"histogram_sum({total('')})" if native else total("_sum")
    counted = f"histogram_count({total('')})" if native else total("_count")
    return {"sum": added, "count": counted, "mean": f"{added} / ({counted} > 0)"}[what]


def quoted(text: str) -> str:
    """Returns a text as PromQL writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def number(value: float) -> str:
    """Returns a number as PromQL takes it and a person reads it: without an exponent, without binary digits."""
    text = format(Decimal(repr(value)).normalize(), "f")
    return "0" if text == "-0" else text


def parse(expr: str) -> Any:
    """Returns the syntax tree of an expression.

    Raises:
      ValueError: it is not PromQL; with the expression.
      MissingExtraError: the parser is not installed.
    """
    try:
        import promql_parser
    except ImportError as error:
        raise MissingExtraError("jaxobs generate", "promql-parser", "grafana") from error
    # The parser is no Python: nested too deeply, it would take the process down with it.
    if len(expr) > MOST_TEXT or sum(map(expr.count, "([{+-")) > MOST_NESTED:
        raise ValueError(f"Not a PromQL expression for a rule, too long or nested too deeply: {expr:.200}")
    try:
        return promql_parser.parse(expr)
    except ValueError as error:
        raise ValueError(f"Invalid PromQL: {expr}\n{error}") from error


def selectors(expr: str) -> Iterator[Any]:
    """Yields the vector selectors of an expression, those in range selectors included."""
    tree = parse(expr)  # first, for it says what is missing where the parser is
    import promql_parser

    found: list[Any] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        return True

    promql_parser.walk(tree, visit)
    yield from found
