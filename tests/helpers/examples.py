"""The examples of README, docs and runbooks: found, with what stands around those that are a fragment."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.paths import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "runbooks").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    ROOT / "tools" / "go" / "README.md",
]
TRIED = ("python", "ipython", "console", "sh", "promql", "yaml", "toml", "json")
OUTPUT = ("", "text")
"""Languages of blocks that show what something prints."""
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*\Z", re.S)
"""Right before a block: it is parsed, and this is why it is not run."""
AROUND: dict[str, str] = tomllib.loads(Path(__file__).with_name("around.toml").read_text(encoding="utf-8"))
"""Calls of `example(1)`, `example(2)`, ... for the Python blocks of a page, with what they need, by the page's name."""


@dataclass(frozen=True)
class Block:
    """Fenced block of a page."""

    page: str
    line: int
    """Number of the first line, behind the fence."""
    language: str
    text: str
    not_run: str | None
    """Why it is not run, as the page says in a comment before it."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """All blocks of these languages, page by page."""
    return [each for page in PAGES for each in _of(page) if each.language in (languages or TRIED + OUTPUT)]


def _of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"(?ms)^( *)```([^\n]*)\n(.*?)^\1```$", text):
        reason = NOT_RUN.search(text, 0, found.start())
        yield Block(
            str(page.relative_to(ROOT)),
            text.count("\n", 0, found.start(3)) + 1,
            found[2].strip(),
            re.sub(rf"(?m)^{found[1]}", "", found[3]),
            reason[1] if reason else None,
        )


def program(page: str) -> str:
    """The Python blocks of a page as one program, with what stands around them in `tests/helpers/around.toml`.

    Each block is compiled for the place where it stands, so that a traceback names the page and its line.
    """
    texts = {
        number: "\n" * (each.line - 1) + each.text
        for number, each in enumerate((each for each in blocks("python") if each.page == page), 1)
        if each.not_run is None
    }
    around = AROUND.get(Path(page).stem.lower().replace("-", "_"))
    calls = "\n".join(f"example({number})" for number in texts)
    if around is not None:
        calls = f"import jax, jax.numpy as jnp, numpy as np, jaxobs\n{around}"
    return f"""
EXAMPLES = {texts!r}

def example(number):
    exec(compile(EXAMPLES.pop(number), {str(ROOT / page)!r}, "exec"), globals())

{calls}
assert not EXAMPLES, f"not run: {{sorted(EXAMPLES)}}"
"""
