"""Whole texts that tests compare with, in a file beside each test file: `test_top.py` has `test_top.txt`.

`pytest -n0 --rewrite-texts tests/views/test_top.py` writes them as they are now: read the difference before you commit
it. To drop texts that no test asks for any more, delete the file first.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

HEAD = "=== {} ===\n"


def sections(path: Path) -> dict[str, str]:
    """The texts of a file by their names."""
    if not path.exists():
        return {}
    _, *parts = re.split(r"^=== (.+) ===\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def compare(path: Path, name: str, text: str, *, rewrite: bool = False) -> None:
    """Fails unless the file has this text under this name. White space at the ends of lines doesn't count."""
    text = "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"
    known = sections(path)
    if rewrite:
        assert "PYTEST_XDIST_WORKER" not in os.environ, "two workers would write one file: add -n0"
        path.write_text("".join(HEAD.format(n) + t for n, t in (known | {name: text}).items()), encoding="utf-8")
        return
    assert name in known, f"{path} has no text `{name}`: see helpers/whole.py"
    assert text.splitlines() == known[name].splitlines(), f"`{name}` in {path.name}; if it should: see helpers/whole.py"
