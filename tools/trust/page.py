"""Parts of docs/trust.md that commands write: each stands between two comments of its name."""

from __future__ import annotations

import re
from pathlib import Path


def get(page: Path, part: str) -> str:
    """Returns a part of the page."""
    found = re.search(_pattern(part), page.read_text(encoding="utf-8"), re.DOTALL)
    return found[2].strip() if found else ""


def put(page: Path, part: str, text: str) -> None:
    """Replaces a part of the page."""
    _replace(page, part, f"\n\n{text.strip()}\n\n")


def put_row(page: Path, part: str, name: str, row: str) -> None:
    """Replaces the row of that name in the table of a part, or adds it at its end."""
    kept = [line for line in get(page, part).splitlines() if not line.startswith(f"| {name} |")]
    put(page, part, "\n".join([*kept, row]))


def _pattern(part: str) -> str:
    return rf"(<!-- {part} -->)(.*?)(<!-- end of {part} -->)"


def _replace(page: Path, part: str, text: str) -> None:
    before = page.read_text(encoding="utf-8")
    after, count = re.subn(_pattern(part), lambda found: found[1] + text + found[3], before, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{page} has no part `{part}`: it stands between <!-- {part} --> and <!-- end of {part} -->.")
    page.write_text(after, encoding="utf-8")
