"""Draws the pictures in docs/ whose inputs have changed since they were drawn, or says which these are.

python -m tools.pictures              draws them: some minutes, with Chromium, Prometheus and an idle machine
python -m tools.pictures --all        draws every picture
python -m tools.pictures --check      exit code 1 if a picture is not drawn from today's inputs
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools import prose

ROOT = Path(__file__).resolve().parent.parent.parent
STAMPS = Path(__file__).with_name("stamps.json")
"""By picture, the hash of the inputs that it was drawn from."""
_SENTENCES = ("jaxobs/findings/**/*.py", "jaxobs/reasons/**/*.py", "jaxobs/base/symptoms.*")
_PAGE = ("jaxobs/web/page/*", "jaxobs/web/page/assets/*", *_SENTENCES, "tools/pictures/pages.py")
INPUTS: Mapping[str, tuple[str, ...]] = {
    "docs/live-page.png": (*_PAGE, "jaxobs/ops/demo/*.py"),
    **{
        f"docs/{name}.png": (*_PAGE, "examples/ragged_batches.py", "jaxobs/views/report/*.py")
        for name in ("screens/verdict", "report", "screens/card")
    },
    **{
        f"docs/screens/{name}.png": (*_PAGE, f"tools/pictures/programs/{name}.py")
        for name in ("leaking", "nan", "server", "healthy")
    },
    "docs/screens/agent.png": (
        "jaxobs/ops/agent/pages/*",
        "jaxobs/ops/agent/rendering.py",
        "jaxobs/ops/diagnosis/known/values.toml",
        "jaxobs/ops/monitoring/rules/loss_nonfinite.*",
        "tools/pictures/agent.py",
        "tools/pictures/programs/nan.py",
    ),
    "docs/notebook.png": (
        "jaxobs/views/notebook/*.py",
        "jaxobs/views/notebook/*.css",
        *_SENTENCES,
        "tools/pictures/notebook.py",
    ),
    **{
        f"docs/dashboards/{name}.png": ("tools/pictures/dashboards.py", f"dashboards/jaxobs-{name}.json")
        for name in ("executive", "oncall", "serving", "debug", "devices", "fleet")
    },
}
"""By picture, the files that decide how it looks. Of jaxobs' code only the sentences count: they are what it shows."""


def stamp(picture: str) -> str:
    """Returns the hash of a picture's inputs.

    Raises:
      FileNotFoundError: a pattern matches no file.
    """
    parts: list[bytes] = []
    for pattern in INPUTS[picture]:
        found = sorted(path for path in ROOT.glob(pattern) if path.is_file())
        if not found:
            raise FileNotFoundError(f"{picture}: no input matches {pattern}")
        ours = [path for path in found if pattern.startswith("jaxobs/") and path.suffix == ".py"]
        lines = (prose.sentences(_code(path)).values() for path in ours)
        parts += [text.encode() for text in sorted({text for by in lines for line in by for text in line})]
        others = [path for path in found if path not in ours]
        parts += [_code(path).encode() if path.suffix == ".py" else path.read_bytes() for path in others]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _code(path: Path) -> str:
    """Returns a module without comments and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    return ast.unparse(tree)


def stale() -> list[str]:
    """Returns the pictures that are missing, or were drawn from other inputs."""
    drawn = json.loads(STAMPS.read_text(encoding="utf-8")) if STAMPS.exists() else {}
    return [picture for picture in INPUTS if drawn.get(picture) != stamp(picture) or not (ROOT / picture).exists()]


def draw(pictures: Iterable[str]) -> None:
    """Draws pictures, and notes their inputs."""
    from tools.pictures import agent, dashboards, notebook, pages

    wanted = [ROOT / picture for picture in pictures]
    for path in wanted:
        path.parent.mkdir(parents=True, exist_ok=True)
    boards = [path.stem for path in wanted if path.parent.name == "dashboards"]
    if boards:
        dashboards.draw_run(ROOT / "docs" / "dashboards", boards)
    if ROOT / "docs" / "notebook.png" in wanted:
        notebook.draw(ROOT / "docs" / "notebook.png")
    if ROOT / "docs" / "screens" / "agent.png" in wanted:
        agent.draw(ROOT / "docs" / "screens" / "agent.png")
    pages.draw([path for path in wanted if path.stem in pages.DRAWN])
    old = json.loads(STAMPS.read_text(encoding="utf-8")) if STAMPS.exists() else {}
    new = {picture: stamp(picture) if ROOT / picture in wanted else old.get(picture, "") for picture in INPUTS}
    STAMPS.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns 1 if `--check` found a picture that is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every picture, not only those that are out of date")
    parser.add_argument("--check", action="store_true", help="draw nothing; list what is out of date")
    given = parser.parse_args(arguments)
    wanted = list(INPUTS) if given.all else stale()
    if given.check:
        if wanted:
            print(
                "Pictures that are out of date; draw them with `make pictures`:", *wanted, sep="\n  ", file=sys.stderr
            )
        return 1 if wanted else 0
    if wanted:
        draw(wanted)
    print(f"{len(wanted)} of {len(INPUTS)} pictures drawn", *wanted, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
