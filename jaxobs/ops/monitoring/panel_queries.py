"""Pieces of PromQL that many panels have."""

from __future__ import annotations

MOST = 20
"""Lines that a person can tell apart in one panel."""


def highest(expr: str, most: int = MOST) -> str:
    """The highest of them, at each time."""
    return f"topk({most}, {expr})"


def lowest(expr: str, most: int = MOST) -> str:
    """The lowest of them, at each time."""
    return f"bottomk({most}, {expr})"


def or_zero(expr: str, by: str = "job") -> str:
    """Zero for each job, or process, that has none of it, so that nothing found is told from nothing scraped."""
    return f"{expr} or 0 * count by ({by}) (jax_build_info{{@}})"


def share(part: str, whole: str, by: str) -> str:
    """A ratio of two sums of rates of counters: 0 where there is no part, nothing where the whole is 0."""
    total = f"(sum by ({by}) (rate({whole}[$__rate_interval])) > 0)"
    return f"(sum by ({by}) (rate({part}[$__rate_interval])) / {total} or 0 * {total})"


def steps(by: str = "job, loop") -> str:
    """Steps a second of jobs: each run's first process counts, for the steps of the others are the same ones."""
    return (
        f"sum by ({by}) (rate(jax_steps_total{{@}}[$__rate_interval])"
        ' * on (job, instance) group_left () jax_process_info{@, process_index="0"})'
    )
