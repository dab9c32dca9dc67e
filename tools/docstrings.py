"""Checks that docstrings can be read alone, and that a loop of several lines names its variable.

python -m tools.docstrings              checks the whole repository; exit code 1 with a line for each fault
python -m tools.docstrings PATH ...     checks these files and folders

The rule is in docs/style.md. A program cannot see all of it: this one knows the first words of a docstring that need
the line above to make sense.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("jaxobs", "tests", "tools", "benchmarks", "examples")

EXEMPT = {
    "jaxobs/ops/diagnosis": "written anew soon, with its docstrings",
}
"""Folders that are not checked, each with the reason."""

_LEANING = re.compile(
    r"(?:Of|The same|The others?|Those|These|This one|That|It|Its|They|Their|Them|He|She|Ones?|Others?|Same|Likewise"
    r"|Also|And|But|Or|So|What|Who|Whose|Whoever|Whatever|Where|When|Whether (?:it|its|they|their|that|this|one|there)"
    r"|As (?:above|before|there|that|those)|(?:For|From|By|In|To|With) (?:it|them|those|that))\b"
)
"""First words of a docstring that has no subject, or refers to one that is elsewhere."""


def within(path: str, folders: Iterable[str]) -> bool:
    """Returns whether a file, relative to the repository, is in one of these folders."""
    return any(path.startswith(f"{folder}/") for folder in folders)


def faults(source: str) -> Iterator[tuple[int, str]]:
    """Yields each fault of a module's source as its line and a sentence."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            leaning = _LEANING.match(node.value.value.strip())
            if leaning:
                yield node.lineno, f"the docstring begins with `{leaning[0]}`: name its subject"
        elif isinstance(node, ast.For | ast.AsyncFor):
            several = node.body[0].lineno != node.body[-1].end_lineno
            if several and ast.unparse(node.target) == "each":
                yield node.lineno, "`for each in` has a body of several lines: name what it goes through"


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each fault. Exit code 0: there is no fault; 1: there are some."""
    parser = argparse.ArgumentParser(prog="python -m tools.docstrings", description="Checks docstrings and loops.")
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; the whole repository by default")
    paths = parser.parse_args(arguments).paths
    found = 0
    for file in _files(paths or [ROOT / name for name in CHECKED]):
        path = file.resolve()
        shown = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
        if paths or not within(shown, EXEMPT):
            for line, fault in sorted(faults(path.read_text(encoding="utf-8"))):
                print(f"{shown}:{line}: {fault}")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
