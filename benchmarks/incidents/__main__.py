"""`python -m benchmarks.incidents`: the table of `docs/diagnose.md`, and what is wrong; `--write` puts it there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.incidents.evaluation import Outcome, judged, replay_all, summary, table
from benchmarks.incidents.metrics import rows
from jaxobs.ops.diagnosis.knowledge import SYMPTOM
from jaxobs.ops.diagnosis.known import known

PAGE = Path(__file__).parents[2] / "docs" / "diagnose.md"
_WRITTEN = "written by `python -m benchmarks.incidents --write`"


def written(page: str, texts: Mapping[str, str]) -> str:
    """A page with all tables in their places: the results, and the diagnoses."""
    for name, body in {**texts, "diagnoses": diagnoses()}.items():
        begin, end = f"<!-- {name}: {_WRITTEN} -->\n", f"<!-- end of {name} -->"
        if begin not in page:
            raise ValueError(f"{PAGE} has no place for {name}: {begin}")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}{body}\n{end}{rest.partition(end)[2]}"
    return page


def results(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Returns the texts for the page: first tries say how right a diagnosis is on an incident that nobody had read."""
    return {"judged": judged(outcomes), "incidents": summary(outcomes)}


def diagnoses() -> str:
    rows = [
        f"| `{name}` | {each.title} | {'symptom, ' if each.role == SYMPTOM else ''}{each.impact} |"
        for name, each in known().items()
    ]
    return "\n".join(["| id | what happened | effect on the job |", "|---|---|---|", *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """1 when a scenario is not right, or the page is not fresh."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.incidents", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/diagnose.md")
    parser.add_argument("--check", action="store_true", help="fail if docs/diagnose.md is not up to date")
    args = parser.parse_args(arguments)
    outcomes = replay_all()
    texts = results(outcomes)
    print("\n\n".join([table(outcomes), rows(outcomes), *texts.values()]))
    wrong = [each for each in outcomes if each.wrong is not None]
    for each in wrong:
        print(f"{each.scenario.family}/{each.scenario.name}: {each.wrong}", file=sys.stderr)
    page = PAGE.read_text(encoding="utf-8")
    if args.write:
        PAGE.write_text(written(page, texts), encoding="utf-8")
    stale = args.check and written(page, texts) != page
    if stale:
        print("docs/diagnose.md is not up to date: python -m benchmarks.incidents --write", file=sys.stderr)
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main())
