"""What counters of one process say together: shares of its time and of its requests, and counters that stand still.

Alerts and findings say the same where they are there. A Prometheus without jaxobs' rules, and metrics that somebody
kept, have the counters alone.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from jaxobs.ops.diagnosis.evidence import METRIC, Evidence, Observation

STARTED = "jax_process_start_timestamp_seconds"
BUILD = "jax_build_info"
"""The versions that a process runs."""
PROCESS = "jax_process_info"
"""Which process of its job an endpoint or a file is of."""
TIME = "jax_time_seconds_total"
"""Wall seconds of a process, by category."""
BATCHES = "jax_input_batches_total"
"""Of inputs that the program declares."""

_LEAST_BEFORE = 120.0
"""Seconds of a history in which something was not so yet."""

YOUNG = 2700.0
"""Seconds after its start in which a process compiles what it needs, and waits for it. As in the alerts."""


def is_of(one: Observation, other: Observation) -> bool:
    """Whether two samples are about one process."""
    return one.source == other.source and one.process == other.process and job(one) == job(other)


def job(one: Observation) -> tuple[str | None, ...]:
    """What a Prometheus says of the job that a sample is of, and of its pod."""
    return tuple(one.data.get(name) for name in ("job", "namespace", "cluster", "pod"))


def samples(evidence: Evidence, sign: Observation, name: str, **labels: str) -> Iterator[Observation]:
    """The samples of a metric of the process that a sign is of.

    Args:
      labels: regular expressions that the labels' values have to match as a whole.
    """
    for each in evidence.metric(name):
        if is_of(each, sign) and all(re.fullmatch(value, each.data.get(key, "")) for key, value in labels.items()):
            yield each


def total(evidence: Evidence, sign: Observation, name: str, **labels: str) -> float:
    """Their sum: what a counter grew by where its history is known, else its value."""
    return sum(each.value or 0.0 for each in samples(evidence, sign, name, **labels))


def is_young(evidence: Evidence, sign: Observation) -> bool:
    """Whether its process has started a short time before; False if that cannot be known."""
    if sign.time is None:
        return False
    began = [each.value for each in samples(evidence, sign, STARTED) if each.value]
    return any(0 <= sign.time - each < YOUNG for each in began)


def rest(sign: Observation) -> tuple[float, float]:
    """Of a counter with a history: seconds since it grew last, and the longest time between two rises before."""
    rises = [at for (_, before), (at, after) in itertools.pairwise(sign.history) if after > before]
    if len(rises) < 2:
        return 0.0, 0.0
    return sign.history[-1][0] - rises[-1], max(later - earlier for earlier, later in itertools.pairwise(rises))


def since(sign: Observation) -> float | None:
    """Since when a gauge has been 0, or not, as it is now; None without a history."""
    if not sign.history:
        return None
    last = bool(sign.history[-1][1])
    behind = itertools.takewhile(lambda point: bool(point[1]) == last, reversed(sign.history))
    return min(at for at, _ in behind)


def has_just_become(evidence: Evidence, sign: Observation) -> bool:
    """Whether a gauge has become what it is within the history that its source has."""
    moment = since(sign)
    starts = [each.history[0][0] for each in evidence.of_kind(METRIC) if each.history and each.source == sign.source]
    return moment is not None and moment > min(starts) + _LEAST_BEFORE


def places(evidence: Evidence, source: str, names: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Processes with metrics of JAX, by some labels that say where they run."""
    return {
        tuple(each.data[name] for name in names): each.process
        for each in evidence.of_kind(METRIC)
        if each.source == source and each.name.startswith("jax_") and all(each.data.get(name) for name in names)
    }


def is_elsewhere(evidence: Evidence, sign: Observation) -> bool:
    """Whether kube-state-metrics says something of a pod or node without such a process, or said it before already."""
    names = place_labels(sign.name)
    own = tuple(sign.data.get(name, "") for name in names)
    return bool(names) and (own not in places(evidence, sign.source, names) or not has_just_become(evidence, sign))


def place_labels(metric: str) -> tuple[str, ...]:
    """The labels by which a metric of kube-state-metrics names a pod or a node; none of another metric."""
    if not metric.startswith("kube_"):
        return ()
    return ("node",) if metric.startswith("kube_node_") else ("namespace", "pod")
