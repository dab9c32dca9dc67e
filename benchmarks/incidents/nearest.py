"""`python -m benchmarks.incidents.nearest`: the known incidents that `jaxobs diagnose` lists, and how near they are.

python -m benchmarks.incidents.nearest            prints how often a left-out thread is among threads of its cause
python -m benchmarks.incidents.nearest --write    writes jaxobs/ops/diagnosis/incidents.jsonl.gz and docs/diagnose.md
python -m benchmarks.incidents.nearest --check    exit code 1 if either is not up to date

A scenario that was made after a thread becomes a record with the link, `truth`, `cure` and the words of its sources.
Each thread is left out in turn, with all scenarios made after it, and looked for among the others.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.incidents.evaluation import Outcome, interval, replay_all
from benchmarks.incidents.scenarios import Scenario
from jaxobs.ops.diagnosis import nearest
from jaxobs.ops.diagnosis.nearest import Index, Row

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "diagnose.md"
DATA = ROOT / "jaxobs" / "ops" / "diagnosis" / nearest.DATA
BEGIN = "<!-- nearest: written by `python -m benchmarks.incidents.nearest --write` -->\n"
END = "<!-- end of nearest -->"
_THREAD = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:#(?P<number>\d+)| (?P<page>docs/\S+\.md)\b)")


def link(after: str) -> str:
    """Returns the address of a thread, or of a page of the documentation; empty if it has none."""
    found = _THREAD.match(after)
    if found is None:
        return ""
    place = f"issues/{found['number']}" if found["number"] else f"blob/main/{found['page']}"
    return f"https://github.com/{found['name']}/{place}"


def key(scenario: Scenario) -> str:
    """Returns what stands for the thread of a scenario; its own name if it has none."""
    return link(scenario.after or "") or f"{scenario.family}/{scenario.name}"


def row(outcome: Outcome) -> Row:
    """Returns a scenario as a line of the data."""
    scenario = outcome.scenario
    told = {"what": scenario.truth, "cure": scenario.cure} if scenario.cure and link(scenario.after or "") else {}
    counted = nearest.words(outcome.evidence)
    return {"thread": key(scenario), "causes": sorted(scenario.causes), **told, "words": dict(sorted(counted.items()))}


def data(outcomes: Sequence[Outcome]) -> str:
    """Returns the lines of the data, of all scenarios whose sources say anything."""
    rows = sorted((row(each) for each in outcomes), key=lambda each: json.dumps(each, sort_keys=True))
    return "".join(json.dumps(each, separators=(",", ":"), ensure_ascii=False) + "\n" for each in rows if each["words"])


def figures(outcomes: Sequence[Outcome]) -> str:
    """Returns how often a left-out thread is among threads of its cause, as Markdown."""
    index = Index(map(json.loads, data(outcomes).splitlines()))
    threads = [each for each in outcomes if each.scenario.after and each.scenario.causes]
    named = [
        (each, nearest.chosen(index.near(nearest.words(each.evidence), key(each.scenario)))) for each in threads
    ]  # fmt: skip
    first = sum(_agrees(each, found[:1]) for each, found in named)
    three = sum(_agrees(each, found) for each, found in named)
    likely = [(each, nearest.likely_cause(each.evidence, index, key(each.scenario))) for each in outcomes]
    passed = [(each, found[0]) for each, found in likely if found is not None]
    of_threads = [(each, cause) for each, cause in passed if each.scenario.after and each.scenario.causes]
    right = sum(cause in each.scenario.causes for each, cause in of_threads)
    missed = [(each, found) for each, found in named if each.scenario.first_try not in (None, "right")]
    of_missed = [(each, cause) for each, cause in of_threads if each.scenario.first_try not in (None, "right")]
    healthy = sum(each.scenario.is_control for each, _ in passed)
    doubtful = [each for each in outcomes if each.scenario.expect == "inconclusive"]
    open_ended = sum(each.scenario.expect == "inconclusive" for each, _ in passed)
    controls = sum(each.scenario.is_control for each in outcomes)
    return "\n".join(
        [
            "| each thread left out in turn | threads | share | 95 % interval |",
            "|---|---:|---:|---:|",
            _line("the nearest has the same cause", first, len(threads)),
            _line("one of three has the same cause", three, len(threads)),
            _line(
                "one of three, where the rules were not right at the first try",
                sum(_agrees(*each) for each in missed),
                len(missed),
            ),
            _line("near ones agree on a cause", len(of_threads), len(threads)),
            _line("that cause is right", right, len(of_threads)),
            _line(
                "it is right, where the rules were not right at the first try",
                sum(cause in each.scenario.causes for each, cause in of_missed),
                len(of_missed),
            ),
            _line("healthy controls on which they agree", healthy, controls),
            _line("scenarios that leave the cause open on which they agree", open_ended, len(doubtful)),
        ]
    )


def _agrees(outcome: Outcome, found: Sequence[Row]) -> bool:
    return any(not set(each["causes"]).isdisjoint(outcome.scenario.causes) for each in found)


def _line(name: str, right: int, count: int) -> str:
    low, high = interval(right, count)
    return f"| {name} | {right} of {count} | {right / max(count, 1):.0%} | {low:.0%} to {high:.0%} |"


def written(page: str, text: str) -> str:
    """Returns a page with the figures in their place."""
    before, begin, rest = page.partition(BEGIN)
    if not begin:
        raise ValueError(f"{PAGE} has no place for the figures: {BEGIN}")
    return f"{before}{begin}{text}\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if the data or the page is not up to date, with `--check`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.incidents.nearest", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the data and the figures")
    parser.add_argument("--check", action="store_true", help="fail if they are not up to date")
    args = parser.parse_args(arguments)
    outcomes = replay_all()
    lines, text = data(outcomes), figures(outcomes)
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    if args.write:
        DATA.write_bytes(gzip.compress(lines.encode(), mtime=0))
        PAGE.write_text(written(page, text), encoding="utf-8")
        return 0
    stale = args.check and (gzip.decompress(DATA.read_bytes()).decode() != lines or written(page, text) != page)
    if stale:
        print("Not up to date: python -m benchmarks.incidents.nearest --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
