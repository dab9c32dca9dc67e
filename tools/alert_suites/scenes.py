"""Processes minute by minute, as Prometheus would have scraped them: from what they do to promtool's notation.

    Process("train", "a", [init(2), compiles(3), trains(60), saves(2)], start=10)

A minute is one sample. Series appear with the part that first counts them, and stay until the process ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxobs.facts.wall import TIME_CATEGORIES

Value = float | None
"""None where nothing was scraped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some minutes of a process in which it does one thing."""

    minutes: int
    time: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each minute by category."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Increases of counters in each minute, by name and labels: `jax_steps_total{loop="train"}`."""
    once: Mapping[str, float] = field(default_factory=dict)
    """Increases of counters in the first minute alone."""
    gauges: Mapping[str, float] = field(default_factory=dict)
    scraped: bool = True
    fails: bool = False
    """Whether a scrape that brings nothing was tried, so that `up` is 0."""


def init(minutes: int) -> Part:
    """The program starts: before its first step, that is `unattributed` until it is known."""
    return Part(minutes=minutes, time={"init": 60})


def compiles(minutes: int, function: str = "step", cause: str = "first_call") -> Part:
    """A program compiles."""
    whose = f'function="{function}"'
    return Part(
        minutes=minutes, time={"compile": 60},
        gauges={"jax_compilations_in_progress": 1},
        once={
            f'jax_compilations_total{{{whose}, cause="{cause}", cache="miss"}}': 1,
            f'jax_function_compile_seconds_sum{{{whose}, phase="compile"}}': minutes * 60,
            f'jax_function_compile_seconds_count{{{whose}, phase="compile"}}': 1,
        },
    )  # fmt: skip


def trains(
    minutes: int, steps: float = 60, *, lost: Mapping[str, float] | None = None, more: Mapping[str, float] | None = None
) -> Part:  # fmt: skip
    """Steps; `lost` are seconds of each minute in other categories; `more`, further counters."""
    other = dict(lost or {})
    busy = 60 - sum(other.values())
    return Part(
        minutes=minutes, time={"step": busy, **other},
        counts={
            'jax_steps_total{loop="train"}': steps, 'jax_step_seconds_count{loop="train"}': steps,
            'jax_step_seconds_sum{loop="train"}': busy, **(more or {}),
        },
    )  # fmt: skip


def spends(category: str, minutes: int) -> Part:
    """All time in one category: `checkpoint`, `eval`, `idle`, `input_wait`, ..."""
    return Part(minutes=minutes, time={category: 60})


def serves(
    minutes: int, requests: float = 60, *, errors: float = 0, cold: float = 0, client_errors: float = 0,
    seconds: float = 0.05, route: str = "/predict", in_flight: float = 1, probes: float = 6,
) -> Part:  # fmt: skip
    """Requests a minute, some of which fail or compile; and those of a readiness probe."""
    chosen = {("false", "ok"): requests - errors - cold - client_errors, ("true", "ok"): cold,
              ("false", "error"): errors, ("false", "client_error"): client_errors}  # fmt: skip
    counts = {
        f'jax_requests_total{{route="{route}", cold="{kind}", outcome="{outcome}"}}': rate
        for (kind, outcome), rate in chosen.items()
        if rate or (kind, outcome) == ("false", "ok")
    }
    counts['jax_requests_total{route="/healthz", cold="false", outcome="ok"}'] = probes
    whose = f'route="{route}", cold="false"'
    counts[f"jax_request_seconds_count{{{whose}}}"] = requests - cold
    counts[f"jax_request_seconds_sum{{{whose}}}"] = (requests - cold) * seconds
    for bound in ("0.1", "0.5", "1.0", "2.5", "10.0", "+Inf"):
        within = seconds <= float(bound)
        counts[f'jax_request_seconds_bucket{{{whose}, le="{bound}"}}'] = (requests - cold) if within else 0
    return Part(minutes=minutes, time={"idle": 60}, counts=counts, gauges={"jax_requests_in_flight": in_flight})


def queues(minutes: int, waiting: int, more: int = 0) -> list[Part]:
    """Requests to an inference engine whose cache is full, of which so many wait, and `more` after each minute."""
    place, held = 'jax_engine_requests{engine="llm", state="waiting"}', 'jax_engine_kv_cache_ratio{engine="llm"}'
    busy = serves(1, seconds=2)
    each = [waiting + more * minute for minute in range(minutes)]
    return [replace(busy, gauges={**busy.gauges, place: count, held: 0.98}) for count in each]


def unseen(minutes: int) -> Part:
    """The process goes on, and is not scraped."""
    return Part(minutes=minutes, scraped=False)


def pushed(job: str, values: str) -> dict[str, str]:
    """Times of the ends that a job told a Pushgateway, in promtool's notation."""
    return {f'jax_batch_last_end_timestamp_seconds{{job="{job}", instance=""}}': values}


def using(part: Part, *shares: float) -> list[Part]:
    """The part in a container whose memory is in use by these shares, one a minute, and else full of page cache."""
    known = {"jax_container_spec_memory_limit_bytes": 64e9, "jax_container_memory_usage_bytes": 64e9}
    return [
        replace(part, minutes=part.minutes if len(shares) == 1 else 1, once=part.once if not minute else {},
                gauges={**part.gauges, **known, "jax_container_memory_reclaimable_bytes": round(64e9 * (1 - share))})
        for minute, share in enumerate(shares)
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process from its start to its end, or to the end of the scene."""

    job: str
    instance: str
    parts: Sequence[Part]
    start: int = 0
    """Minute."""
    older: float = 0
    """Minutes that it is older than its first sample."""
    index: int = 0
    count: int = 1
    run: str = ""
    last_exit: str = ""
    version: str = "0.10.2"
    labels: str = ""
    """More labels of the target, as `namespace="a"`."""
    up_after: int = 0
    """Minutes for which its target stays after its end, without an answer."""
    ended: str = ""
    """Labels that its target has from its end on, as `pod_phase="Failed"`."""
    gone: bool = False
    """Whether the process ends without an answer to a scrape in its last minute, as most do."""

    def series(self) -> dict[str, list[Value]]:
        """Values by series, from minute 0 on."""
        target = ", ".join(each for each in (self.labels, f'job="{self.job}"', f'instance="{self.instance}"') if each)
        rows: dict[str, list[Value]] = {}
        # Every process exports every category, most of them at 0.
        totals = {f'jax_time_seconds_total{{category="{name}"}}': 0.0 for name in TIME_CATEGORIES}
        minute = self.start
        always = {
            "jax_process_start_timestamp_seconds": (self.start - self.older) * 60,
            f'jax_build_info{{jaxobs="1", python="3.11", jax="{self.version}", jaxlib="{self.version}"}}': 1,
            f'jax_process_info{{process_index="{self.index}", process_count="{self.count}"}}': 1,
            "jax_processes": self.count,
            f'jax_run_info{{run_id="{self.run}", last_exit="{self.last_exit}"}}': 1,
            "up": 1,
        }
        for part in self.parts:
            for passed in range(part.minutes):
                rises = {
                    **part.counts,
                    **{f'jax_time_seconds_total{{category="{n}"}}': s for n, s in part.time.items()},
                }
                for name, by in (*rises.items(), *(part.once.items() if not passed else ())):
                    totals[name] = totals.get(name, 0) + by
                if part.scraped:
                    for name, value in {**always, **totals, **part.gauges}.items():
                        row = rows.setdefault(name, [])
                        row += [None] * (minute - len(row))
                        row.append(value)
                elif part.fails:
                    row = rows.setdefault("up", [])
                    row += [None] * (minute - len(row))
                    row.append(0)
                minute += 1
        if self.up_after:
            row = rows.setdefault(f"up{{{self.ended}}}" if self.ended else "up", [])
            row += [None] * (minute - len(row))
            row += [0] * self.up_after
        return {_labelled(name, target): row for name, row in rows.items()}


def _labelled(name: str, target: str) -> str:
    bare, _, labels = name.partition("{")
    return f"{bare}{{{target}, {labels}" if labels else f"{bare}{{{target}}}"


def series(processes: Iterable[Process], minutes: int) -> dict[str, str]:
    """The series of a scene in promtool's notation, up to its end."""
    found: dict[str, list[Value]] = {}
    for process in processes:
        for name, row in process.series().items():
            known = found.get(name)
            if known is None:
                found[name] = row
            else:  # another process at the same address
                known += [None] * (len(row) - len(known))
                found[name] = [
                    b if b is not None else a for a, b in zip(known, row + [None] * len(known), strict=False)
                ]
    return {name: written(row[:minutes], minutes) for name, row in found.items() if any(v is not None for v in row)}


def written(row: list[Value], minutes: int) -> str:
    """Values as promtool takes them: `0+60x59`, `_x3`, `stale` where a series ends before the scene does."""
    tokens: list[str] = []
    at = 0
    while at < len(row):
        first = row[at]
        end = at + 1
        if first is None:
            while end < len(row) and row[end] is None:
                end += 1
            # What was scraped before is stale with the next scrape that lacks it.
            tokens += ["stale", f"_x{end - at - 1}"] if at and end - at > 1 else ["stale" if at else f"_x{end - at}"]
        else:
            second = row[end] if end < len(row) else None
            step = 0.0 if second is None else second - first
            while end < len(row) and _near(row[end], first + step * (end - at)):
                end += 1
            tokens.append(f"{first:.10g}{step:+.10g}x{end - at - 1}")
        at = end
    return " ".join([*tokens, *(["stale"] if len(row) < minutes else [])])


def _near(value: Value, wanted: float) -> bool:
    return value is not None and abs(value - wanted) < 1e-6 * max(1.0, abs(wanted))
