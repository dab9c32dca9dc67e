"""`python -m benchmarks.incidents.wrappings`: the same logs as shippers write them, which must change no answer.

python -m benchmarks.incidents.wrappings                 every scenario with a log, in every wrapping: some minutes
python -m benchmarks.incidents.wrappings --every 8       every eighth scenario
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

from benchmarks.incidents.evaluation import replay
from benchmarks.incidents.scenarios import EPOCH, Scenario, expanded, scenarios
from jaxobs.ops.diagnosis.gathering.log_lines import parse

Wrap = Callable[[str, datetime.datetime], str]
"""Takes a line and the time at which it was written."""


_DAY = 86_400.0


def _stamp(at: datetime.datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "123Z"


WRAPPINGS: dict[str, Wrap] = {
    "kubectl --timestamps": lambda line, at: f"{_stamp(at)} {line}",
    "kubectl --prefix --timestamps": lambda line, at: f"[pod/train-0-x7k2p/trainer] {_stamp(at)} {line}",
    "docker compose": lambda line, at: f"trainer-1  | {line}",
    "docker compose --timestamps": lambda line, at: f"trainer-1  | {_stamp(at)} {line}",
    "stern": lambda line, at: f"train-0-x7k2p trainer {line}",
    "syslog": lambda line, at: f"{at:%b %d %H:%M:%S} node-7 trainer[4123]: {line}",
    "journalctl -o short-iso": lambda line, at: f"{at:%Y-%m-%dT%H:%M:%S}+0000 node-7 trainer[4123]: {line}",
    "CRI": lambda line, at: f"{_stamp(at)} stderr F {line}",
    "JSON of Docker": lambda line, at: json.dumps({"log": line + "\n", "stream": "stderr", "time": _stamp(at)}),
    "Cloud Logging": lambda line, at: json.dumps(
        {"insertId": "1x", "textPayload": line, "severity": "ERROR", "timestamp": _stamp(at),
         "resource": {"type": "k8s_container", "labels": {"pod_name": "train-0-x7k2p"}}}
    ),
    "CRLF": lambda line, at: f"{line}\r",
    "colours": lambda line, at: f"\x1b[36m{line}\x1b[0m",
    "kubectl of JSON": lambda line, at: f"{_stamp(at)} " + json.dumps({"ts": at.timestamp(), "msg": line}),
}  # fmt: skip
"""By what writes lines so."""


def wrapped(text: str, wrap: Wrap) -> str:
    """A log in a wrapping: each line with its own time, one without a time with that of the line before it."""
    lines: list[str] = []
    at = next(_times(text), EPOCH - 600.0)
    for line in text.splitlines():
        found = parse(line, 2026)
        told = found.time if found.time is not None and found.time <= EPOCH else at
        at = max(at, told) if not found.yearless or told - at < _DAY else at
        at += 1e-6
        lines.append(wrap(line, datetime.datetime.fromtimestamp(at, datetime.timezone.utc)))
    return "\n".join(lines) + "\n"


def _times(text: str) -> Iterator[float]:
    for line in text.splitlines():
        found = parse(line, 2026)
        if found.time is not None and not found.yearless:
            yield found.time


def answers(scenario: Scenario, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields what `diagnose` says of a scenario, plain and in wrappings: its verdict and the causes."""
    plain = [(kind, name, expanded(text) if kind == "log" else text) for kind, name, text in scenario.sections]
    for wrapping in ("", *names):
        sections = tuple(
            (kind, name, wrapped(text, WRAPPINGS[wrapping]) if wrapping and kind == "log" else text)
            for kind, name, text in plain
        )
        found = replay(replace(scenario, sections=sections)).diagnosis
        yield wrapping, f"{found.verdict} {' '.join(sorted(each.id for each in found.causes))}"


def changed(scenario: Scenario, names: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Returns the wrappings in which the answer is another: scenario, wrapping, plain answer and the other."""
    plain, *others = answers(scenario, names)
    where = f"{scenario.family}/{scenario.name}"
    return [(where, name, plain[1], found) for name, found in others if found != plain[1]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if an answer depends on what its lines are wrapped in."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.incidents.wrappings", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth scenario")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    given = parser.parse_args(arguments)
    # Beside other sources the times of lines that have none would be made up.
    chosen = [each for each in scenarios() if {kind for kind, _, _ in each.sections} == {"log"}][:: given.every]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = [row for rows in pool.map(partial(changed, names=[*WRAPPINGS]), chosen, chunksize=4) for row in rows]
    for where, name, plain, other in found:
        print(f"{where}: {name}: {plain} -> {other}")
    by_name = Counter(name for _, name, _, _ in found)
    blamed = sum(plain.startswith("no_fault") for _, _, plain, _ in found)
    for name in WRAPPINGS:
        print(f"{name}: {by_name[name]} of {len(chosen)} changed")
    print(f"{len(found)} of {len(chosen) * len(WRAPPINGS)} changed, {blamed} of them healthy logs that are blamed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
