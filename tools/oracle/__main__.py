"""Runs other people's tests plain, under `jaxobs.install()` and with `jax.jit = jaxobs.jit`, and compares each test.

python -m tools.oracle jax/tests --files api_test.py pickle_test.py
python -m tools.oracle optax/optax --name 'Optax 0.2.8' --markdown docs/trust.md

Each file of tests has a process of its own for each way. A test whose outcome differs is run again, all ways: only what
differs again counts. Exit code 1 if something does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tools.oracle import INSTALL, OUTCOMES, PLAIN, REPLACED, WAY, WAYS
from tools.quick_xla import quick
from tools.trust import page

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 2400


@dataclass
class Compared:
    """Outcomes of a file's tests in each way."""

    path: Path
    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)
    """By way and test."""
    said: dict[tuple[str, str], str] = field(default_factory=dict)
    """Ends of what failing tests said, by way and test."""
    seconds: dict[str, float] = field(default_factory=dict)

    def not_run(self) -> list[str]:
        """Returns how it came, way by way, that not all of the file's tests ran."""
        ended = ("not collected", "the process")
        return [
            f"{way}: {said}" for way in self.outcomes for said in self.outcomes[way].values() if said.startswith(ended)
        ]

    def differing(self, way: str) -> set[str]:
        """Returns the tests that end otherwise than without jaxobs, those that only one of both ran among them."""
        plain, other = self.outcomes[PLAIN], self.outcomes[way]
        return {test for test in plain.keys() | other.keys() if plain.get(test) != other.get(test)}


def compare(path: Path, arguments: Sequence[str] = ()) -> Compared:
    """Runs a file's tests in each way, and those again that differ."""
    compared = Compared(path)
    for way in WAYS:
        began = time.monotonic()
        compared.outcomes[way], said = _run(path, way, (str(path), *arguments))
        compared.seconds[way] = time.monotonic() - began
        compared.said |= {(way, test): text for test, text in said.items()}
    doubtful = sorted(compared.differing(INSTALL) | compared.differing(REPLACED))
    if doubtful:
        for way in WAYS:
            again, said = _run(path, way, (str(path), *arguments), set(doubtful))
            compared.outcomes[way] |= {test: again.get(test, "not run") for test in doubtful}
            compared.said |= {(way, test): text for test, text in said.items()}
    return compared


def _run(
    path: Path, way: str, arguments: Sequence[str], only: set[str] | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns outcomes and failures' texts by test; of a process that died, what it had written."""
    with tempfile.TemporaryDirectory(prefix="jaxobs-oracle-") as folder:
        outcomes = Path(folder) / "outcomes"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.oracle.plugin", "-p", "no:jaxobs", "-p"]
        command += ["no:cacheprovider", "-p", "no:xdist", "--timeout=300", "--no-header", "-W", "ignore"]
        names = [f"{path}::{test.partition('::')[2]}" for test in sorted(only or ()) if "::" in test]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JAXOBS_")}
        given = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": quick(), "PYTHONPATH": str(ROOT)}
        try:
            done = subprocess.run(
                [*command, *(names or arguments)], cwd=path.parent, timeout=MOST_SECONDS, check=False,
                capture_output=True, text=True, env=kept | given | {WAY: way, OUTCOMES: str(outcomes)},
            )  # fmt: skip
            ended = "" if done.returncode in (0, 1, 5) else f"the process ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            ended = f"the process took more than {MOST_SECONDS} s"
        lines = [json.loads(line) for line in outcomes.read_text().splitlines()] if outcomes.exists() else []
        found = {test: outcome for test, outcome, _said in lines}
        if ended:
            found[str(path.name)] = ended
        return found, {test: text for test, _outcome, text in lines if text}


@dataclass
class Sum:
    """Figures of all files."""

    name: str
    files: list[Compared] = field(default_factory=list)

    def differing(self, way: str) -> int:
        """Returns how many tests end otherwise than without jaxobs."""
        return sum(len(each.differing(way)) for each in self.files)

    def tests(self, outcome: str = "") -> int:
        """Returns how many tests there are without jaxobs, with that outcome if it is given."""
        return sum(outcome in ("", found) for each in self.files for found in each.outcomes[PLAIN].values())

    def row(self) -> str:
        """Returns a row of the page's table."""
        took = " / ".join(f"{sum(each.seconds[way] for each in self.files):.0f} s" for way in WAYS)
        counts = f"{len(self.files)} | {self.tests():,} | {self.tests('passed'):,}"
        return f"| {self.name} | {counts} | {self.differing(INSTALL)} | {self.differing(REPLACED)} | {took} |"


def _print(compared: Compared) -> None:
    """Prints a line for a file, and one for each test that differs, with what it said."""
    plain, took = compared.outcomes[PLAIN], "/".join(f"{compared.seconds[way]:.0f}" for way in WAYS)
    differ = ", ".join(f"{len(compared.differing(way))} differ ({way})" for way in (INSTALL, REPLACED))
    print(f"{compared.path.name}: {len(plain)} tests, {differ}, {took} s", *compared.not_run()[:1], flush=True)
    for way in (INSTALL, REPLACED):
        for test in sorted(compared.differing(way)):
            print(f"  {way}: {test}: {plain.get(test)} -> {compared.outcomes[way].get(test)}")
            print("    " + compared.said.get((way, test), "").replace("\n", "\n    "), flush=True)


def main() -> int:
    """Compares, prints one line for each file, and the sum."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.oracle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIRECTORY")
    parser.add_argument("--files", nargs="+", metavar="FILE", help="of the directory (default: all files of tests)")
    parser.add_argument("--pytest", default="", metavar="ARGUMENTS", help="more arguments of pytest")
    parser.add_argument("--name", default="", help="what the tests are of, for the page (default: the directory)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the figures into this page")
    given = parser.parse_args()
    folder: Path = given.folder.resolve()
    every = sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")})
    files = [folder / name for name in given.files] if given.files else every
    total = Sum(given.name or given.folder.name)
    with ThreadPoolExecutor(given.jobs) as pool:
        for compared in pool.map(lambda path: compare(path, given.pytest.split()), files):
            total.files.append(compared)
            _print(compared)
    differ = {way: total.differing(way) for way in (INSTALL, REPLACED)}
    print(f"{total.name}: {total.tests()} tests in {len(files)} files;", end=" ")
    print(f"{differ[INSTALL]} differ under install, {differ[REPLACED]} replaced")
    if given.markdown is not None:
        page.put_row(given.markdown, "oracle", total.name, total.row())
    not_run = [each.path.name for each in total.files if each.not_run()]
    if not_run:
        print(f"{total.name}: not all ran in {', '.join(not_run)}: see above, and what pytest says of them")
    return 1 if any(differ.values()) or not_run else 0


if __name__ == "__main__":
    sys.exit(main())
