"""Times the first half hour of a newcomer: a fresh clone, `make demo`, `make test`, and the commands of each tutorial.

python -m tools.half_hour             prints the table: half an hour, as the newcomer takes
python -m tools.half_hour --write     also puts the table into docs/guide.md

Each command runs in a clone of the committed state. `Cold` is a first run, with empty caches of packages; `warm` is a
second clone, with the caches that the first clone filled.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tools.trust import page

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide.md"
PART = "half hour"
TUTORIALS = ("first-fix", "fleet", "incident")
ADDRESS = "http://127.0.0.1:"
"""Text that `make demo` prints with the address of its page."""
OURS = ("JAX", "XLA_", "PYTHON", "VIRTUAL_ENV", "CI")
"""Beginnings of variables that a newcomer's shell does not have."""

Rows = dict[str, dict[str, float]]
"""Seconds by row and by column of the table."""


def measure(folder: Path) -> Rows:
    """Returns the seconds of each command, in clones that it makes in this empty folder.

    Raises:
      SystemExit: a command failed; its last lines are printed.
    """
    caches = {f"{each}_CACHE_DIR": str(folder / each.lower()) for each in ("UV", "PIP")}
    variables = {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | caches
    rows: Rows = {}
    for column in ("cold", "warm"):
        clone = folder / column
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        first, last = run(clone, variables, "make", "demo", "ARGS=--once --port 0")
        rows.setdefault("`make demo` prints the address of its page", {})[column] = first
        rows.setdefault("`make demo ARGS=--once` ends", {})[column] = last
        rows.setdefault("`make setup` adds what the tests need", {})[column] = run(clone, variables, "make", "setup")[1]
    rows["`make test`, set up"] = {"warm": run(clone, variables, "make", "test")[1]}
    for tutorial in TUTORIALS:
        command = ("pytest", "-q", "-p", "no:xdist", "tests/project/test_tutorials.py", "-k", tutorial)
        seconds = run(clone, variables, ".venv/bin/python", "-m", *command)[1]
        rows[f"[{tutorial}](tutorials/{tutorial}.md): all commands, typed without a pause"] = {"warm": seconds}
    return rows


def run(folder: Path, variables: Mapping[str, str], *command: str) -> tuple[float, float]:
    """Runs a command, and returns the seconds until it printed an address, if it did, and until it ended."""
    began = time.monotonic()
    address = 0.0
    printed = []
    with subprocess.Popen(
        command, cwd=folder, env=dict(variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            if ADDRESS in line and not address:
                address = time.monotonic() - began
    ended = time.monotonic() - began
    print(f"{ended:7.1f} s  {' '.join(command)}", flush=True)
    if process.returncode:
        raise SystemExit(f"{''.join(printed[-40:])}`{' '.join(command)}` failed with {process.returncode}.")
    return address, ended


def table(rows: Rows) -> str:
    """Returns the rows as a table of Markdown."""
    lines = ["| | cold caches | warm caches |", "|---|---:|---:|"]
    for name, seconds in rows.items():
        lines.append(f"| {name} | {_shown(seconds.get('cold'))} | {_shown(seconds.get('warm'))} |")
    return "\n".join(lines)


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def main() -> None:
    """Prints the table, and writes it if asked to."""
    parser = argparse.ArgumentParser(description="Times the first half hour of a newcomer.")
    parser.add_argument("--write", action="store_true", help="put the table into docs/guide.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = table(measure(Path(folder)))
    print(text)
    if arguments.write:
        page.put(GUIDE, PART, f"{text}\n\nMeasured on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
