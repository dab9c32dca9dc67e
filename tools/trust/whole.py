"""Sum of all that is tried: programs, readers, network, memory and versions, a row for each, for `make trust`."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.fuzzing import attacked, guided, originals, worst
from tools.trust import page

ROOT = Path(__file__).resolve().parents[2]
TRUST, VERSIONS = ROOT / "docs" / "trust.md", ROOT / "docs" / "versions.md"
HEAD = ["| what | how hard | | figure | measured |", "|---|---|---|---|---|"]
ATTACKS = (
    "base/test_callers.py", "ops/agent/test_agent_service.py", "ops/agent/test_flood.py",
    "ops/assistants/test_serving.py", "ops/test_connections.py", "ops/test_entrance.py",
    "web/test_hostile_clients.py", "web/test_page_attacks.py",
    "web/test_tls.py",
)  # fmt: skip
"""Tests under `tests` that attack a server as SECURITY.md describes."""
NOW = "now"


@dataclass(frozen=True)
class Part:
    """A row of the sum."""

    what: str
    hard: str
    held: bool
    figure: str
    measured: str = NOW

    def row(self) -> str:
        """Returns it as Markdown."""
        state = "held" if self.held else "**not held**"
        return f"| {self.what} | {self.hard} | {state} | {self.figure} | {self.measured} |"


def programs(table: str) -> Part:
    """Returns the row of the hostile programs, from their table."""
    held, not_held = (sum(state in line for line in table.splitlines()) for state in ("| held |", "| **not held**"))
    hard = "output and exit code without jaxobs and in three ways with it, time and memory within bounds"
    return Part("programs", hard, not not_held, f"{held} of {held + not_held} hold")


def readers() -> Part:
    """Gives each reader a line of 100 MB, and returns the row; the page's part has all shapes."""
    broken, count = [], 0
    with tempfile.TemporaryDirectory(prefix="jaxobs-trust-") as folder:
        made = originals.make(Path(folder))
        place = made.folder / "worst"
        place.mkdir()
        for reader in attacked.every(place, made):
            row = worst.Row(reader, only=("one line",))
            broken += list(row.measure(place, worst.SIZE))
            count += 1
    print(*broken, sep="\n", file=sys.stderr, flush=True)
    figure = f"{count - len({each.split(',')[0] for each in broken})} of {count} hold"
    return Part("readers", "one line of 100 MB each, within 500 MiB and 10 s of a processor", not broken, figure)


def readers_before() -> Part:
    """Returns the row of all shapes, as the page has it."""
    rows = page.get(TRUST, worst.PART).splitlines()[2:]
    shapes = sum(int(each.split(" | ")[3]) for each in rows)
    held = sum(each.endswith("| held |") for each in rows)
    hard = f"{shapes:,} files, answers and bodies that are as bad as can be"
    return Part("readers, all shapes", hard, held == len(rows), f"{held} of {len(rows)} hold", "`fuzz_readers --worst`")


def readers_guided() -> Part:
    """Returns the row of the readers that Atheris fuzzed, as the page has it."""
    rows = [line.split(" | ") for line in page.get(TRUST, guided.PART).splitlines()[4:]]
    inputs = sum(int(each[1].replace(",", "")) for each in rows)
    held = sum(each[-1] == "held |" for each in rows)
    hard = f"{inputs:,} inputs that Atheris chose by the code that they reach"
    figure = f"{held} of {len(rows)} hold"
    return Part("readers, guided", hard, held == len(rows) > 0, figure, "`fuzz_readers --guided`")


def network() -> Part:
    """Runs the attacks on servers, and returns the row."""
    command = [sys.executable, "-m", "pytest", "-q", "-n2", *(f"tests/{each}" for each in ATTACKS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    counts = {what: count for count, what in re.findall(r"(\d+) (passed|failed|skipped|errors?)", done.stdout)}
    figure = ", ".join(f"{count} {what}" for what, count in counts.items()) or f"pytest ended with {done.returncode}"
    hard = "foreign hosts and origins, cross-site scripts, floods, slow clients, TLS, tokens"
    return Part("network", hard, done.returncode == 0, figure)


def memory() -> Part:
    """Returns the row of the busiest server, as the page has it."""
    rows = [line.split(" | ") for line in page.get(TRUST, "memory").splitlines() if "scrapes a second |" in line]
    held = all(each[-1].startswith("held") for each in rows)
    return Part("memory", "a busy server for an hour", held, f"{rows[-1][0][2:]}: {rows[-1][4]}", "`trust --memory 60`")


def versions() -> Part:
    """Returns the row of what works where, as the page of versions has it."""
    matrix = [cell for line in _rows("matrix") for cell in line.split(" | ")[1:]]
    packages = [cell for line in _rows("dependencies") for cell in line.split(" | ")[1:]]
    cells = [each for each in (*matrix, *packages) if re.search(r"\d", each)]
    held = sum("**" not in each for each in cells)
    hard = "JAX on each Python, the lowest and the newest packages"
    return Part("versions", hard, held == len(cells), f"{held} of {len(cells)} hold", "`tools.versions`")


def _rows(part: str) -> list[str]:
    return page.get(VERSIONS, part).strip().splitlines()[2:]


def parts(table: str) -> Iterator[Part]:
    """Yields all rows, what takes minutes last."""
    yield programs(table)
    yield readers_before()
    yield readers_guided()
    yield memory()
    yield versions()
    yield network()
    yield readers()
