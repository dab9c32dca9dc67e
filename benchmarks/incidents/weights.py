"""`python -m benchmarks.incidents.weights`: how often each sign of a fault was right, for `weights.json` of the room.

A fault's own share comes from first tries alone: scenarios in which it was named before anything was changed for them,
rightly or wrongly. A sign's share counts scenarios that were right at the first try fully, and others, for which it may
have been written, by half; it starts from its fault's share, as if that had been seen twice.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.incidents.evaluation import Outcome, replay_all
from jaxobs.ops import diagnosis
from jaxobs.ops.diagnosis import kinds
from jaxobs.ops.diagnosis.cases import ANY_EXCEPTION
from jaxobs.ops.diagnosis.evidence import LINE, courses
from jaxobs.ops.diagnosis.judging import weighed
from jaxobs.ops.diagnosis.knowledge import AnySign
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.weights import FAULT, KIND, READ, key, usual

FILE = Path(diagnosis.__file__).with_name("weights.json")
BEFORE = 2.0
"""How many scenarios a share counts for from which another one starts."""
_WRONG = re.compile(r"^(?:cause \()?(\w+)\)? instead of |^named (\w+)|^(\w+) named as well")


def weights(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Returns the share of each sign by fault and `key`; under an empty key the share of the fault itself."""
    replayed = list(outcomes)
    right, wrong = Counter[str](), Counter[str]()
    for outcome in replayed:
        if outcome.scenario.first_try == "right":
            right.update(outcome.scenario.causes)
        elif named := _WRONG.match(outcome.scenario.first_try or ""):
            wrong.update(one for one in named.groups() if one)
    table = {}
    cases = [weighed(each.evidence, known(), courses(each.evidence)) for each in replayed]
    for name, fault in sorted(known().items()):
        share = (right[name] + BEFORE * READ) / (right[name] + wrong[name] + BEFORE)
        seen: dict[AnySign, float] = {}
        kept: dict[AnySign, float] = {}
        for outcome, found in zip(replayed, cases, strict=True):
            blind = 1.0 if outcome.scenario.first_try == "right" else 0.5
            follows = any(one in outcome.scenario.causes for one in fault.follows) or "*" in fault.follows
            strong = () if follows and name not in outcome.scenario.causes else found[name].strong
            for sign in {sign for sign in fault.signs for one in strong if not sign.weak and sign.shows(one)}:
                seen[sign] = seen.get(sign, 0.0) + blind
                kept[sign] = kept.get(sign, 0.0) + blind * (name in outcome.scenario.causes)
        known_signs = {
            key(sign): round((kept[sign] + BEFORE * usual(sign, share)) / (count + BEFORE), 2)
            for sign, count in seen.items()
        }
        more = _of_kinds(name, replayed) if fault.general >= ANY_EXCEPTION else dict(sorted(known_signs.items()))
        table[name] = {FAULT: round(share, 2)} | more
    return table


def _of_kinds(fault: str, replayed: Iterable[Outcome]) -> dict[str, float]:
    """Returns the share of a general fault among the exceptions of a known kind, at the first try."""
    right = wrong = 0
    for outcome in replayed:
        named = _WRONG.match(outcome.scenario.first_try or "")
        first = fault in outcome.scenario.causes and outcome.scenario.first_try == "right"
        if (first or (named and fault in named.groups())) and kinds.found(fault, outcome.evidence.of_kind(LINE)):
            right, wrong = right + first, wrong + (not first)
    return {KIND: round((right + BEFORE * READ) / (right + wrong + BEFORE), 2)} if right + wrong else {}


def text(table: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the file, a line for each fault."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(signs)}" for name, signs in table.items())
    return f"{{\n{rows}\n}}\n"


def main() -> int:
    """Prints the shares of the faults, or writes all with `--write`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.incidents.weights", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    args = parser.parse_args()
    table = weights(replay_all())
    if args.write:
        FILE.write_text(text(table), encoding="utf-8")
    else:
        print(
            "\n".join(f"{signs['']:.2f}  {name}" for name, signs in sorted(table.items(), key=lambda each: each[1][""]))
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
