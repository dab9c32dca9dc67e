"""Pieces of PromQL that many panels share."""

from __future__ import annotations

MOST = 20
"""Lines that a person can tell apart in one panel."""


def highest(expr: str, most: int = MOST) -> str:
    """Returns an expression for the highest series at each time."""
    return f"topk({most}, {expr})"


def lowest(expr: str, most: int = MOST) -> str:
    """Returns an expression for the lowest series at each time."""
    return f"bottomk({most}, {expr})"


def or_zero(expr: str, by: str = "job") -> str:
    """Returns the expression with a zero for each job or process without a series: nothing found differs from nothing
    scraped."""
    return f"{expr} or 0 * count by ({by}) (jax_build_info{{@}})"


def share(part: str, whole: str, by: str) -> str:
    """Returns the ratio of two sums of rates of counters: 0 without a part, and no sample if the whole is 0."""
    total = f"(sum by ({by}) (rate({whole}[$__rate_interval])) > 0)"
    return f"(sum by ({by}) (rate({part}[$__rate_interval])) / {total} or 0 * {total})"


def steps(by: str = "job, loop") -> str:
    """Returns steps per second of jobs: only each run's first process counts, for the others make the same steps."""
    return (
        f"sum by ({by}) (rate(jax_steps_total{{@}}[$__rate_interval])"
        ' * on (job, instance) group_left () jax_process_info{@, process_index="0"})'
    )
