"""The sentences of the program that users read, as files for the prose linter.

python -m tools.prose FOLDER     writes one file for each module, each sentence on the line that it has in the module

Settings, help, messages, alerts, runbooks, help of metrics, the live page, docstrings: whatever a module says in more
than a few words.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import yaml

from tools import docstrings

ROOT = Path(__file__).resolve().parent.parent
_WORDS = re.compile(r"(?:[A-Za-z][a-z'-]*[,;:]? ){3,}")
_CODE = re.compile(r"[{};]$|=>|\(\?|\\[SWDswdb.(\[]|\w\|\w|^(?:import|def|from|class) ")
"""Python, JavaScript, CSS and regular expressions."""


def sentences(source: str, *, with_docstrings: bool = True) -> dict[int, list[str]]:
    """Returns the texts of a module that say something, by line; the gaps of an f-string are filled with `x`."""
    tree = ast.parse(source)
    inside: set[int] = set()
    found: dict[int, list[str]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
            if with_docstrings and isinstance(node.value.value, str):
                _keep(found, node.lineno, _unwrapped(node.value.value))
        elif isinstance(node, ast.JoinedStr):
            inside.update(id(each) for each in node.values)
            texts = (str(each.value) if isinstance(each, ast.Constant) else "`x`" for each in node.values)
            _keep(found, node.lineno, "".join(texts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            _keep(found, node.lineno, node.value)
    return dict(found)


_TEXTS = {
    ".js": re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`\n]*)`'),
    ".html": re.compile(r'(?:title|aria-label|placeholder)="([^"]*)"|>([^<>]+)<'),
}


def page_sentences(source: str, suffix: str) -> dict[int, list[str]]:
    """Returns the texts by line of a script or of the live page's markup; what a template fills in is `x`."""
    found: dict[int, list[str]] = defaultdict(list)
    for number, line in enumerate(source.splitlines(), 1):
        for texts in _TEXTS[suffix].findall(line):
            _keep(found, number, re.sub(r"\$\{[^{}]*\}", "`x`", "".join(texts)))
    return dict(found)


def _unwrapped(docstring: str) -> str:
    """Puts each paragraph on one line; a paragraph that is indented by four or more is an example of code."""
    paragraphs = re.split(r"\n(?:\s*\n)+", inspect.cleandoc(docstring))
    return "\n".join(" ".join(each.split()) for each in paragraphs if not each.startswith("    "))


_SHOWN = ("title", "description", "no_value", "content", "label")
"""Fields of a dashboard that are texts for people."""


def dashboard_sentences(source: str) -> dict[int, list[str]]:
    """Sentences of a dashboard's YAML file, by line: its titles and descriptions, and no queries."""
    found: dict[int, list[str]] = defaultdict(list)
    nodes = [yaml.compose(source)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(value, yaml.ScalarNode) and key.value in _SHOWN:
                    _keep(found, value.start_mark.line + 1, value.value)
                nodes.append(value)
    return dict(found)


_ENTRY = re.compile(
    r'^([\w.-]+) = (?:"""(?:[^"]|"(?!""))*"""|"[^\n]*"|\[\s*"[^\n]*"(?:,?\n[^\n]*")*[,\s]*\])$', re.MULTILINE
)
"""A text or a list of texts in a TOML file; most expressions are in single quotes."""
_NO_TEXT = frozenset({"clip", "expr", "followed", "line", "receivers", "template", "unless", "unless_followed"})
"""Keys of the other expressions."""


def table_sentences(source: str) -> dict[int, list[str]]:
    """Returns the sentences of a TOML file by line; what is filled in, as `{at}`, is `x`."""
    found: dict[int, list[str]] = defaultdict(list)
    for entry in _ENTRY.finditer(source):
        if entry[1] not in _NO_TEXT:
            (value,) = tomllib.loads(entry[0].replace(entry[1], "text", 1)).values()
            for text in [value] if isinstance(value, str) else value:
                told = re.sub(r"\{\{.*?\}\}|\{[^{}]*\}", "`x`", text) if isinstance(text, str) else ""
                _keep(found, source.count("\n", 0, entry.start()) + 1, told)
    return dict(found)


def _keep(found: dict[int, list[str]], line: int, text: str) -> None:
    """Keeps the lines of a text that are sentences; commands and code are not."""
    for part in (" ".join(each.split()) for each in text.split("\n")):
        if _WORDS.search(f"{part} ") and not _CODE.search(part):
            found[line].append(part if part[-1] in ".:!?" else f"{part}.")


def write(folder: Path) -> list[Path]:
    """Writes a file for each module, with its name and `.md`: to Vale, what is in backticks is code."""
    written = []
    modules = [each for each in (ROOT / "jaxobs").rglob("*") if each.suffix in (".py", ".toml", *_TEXTS)]
    modules = [each for each in modules if each.parent.name != "recordings"]  # they say why to those who read the rules
    for module in sorted([*modules, *(ROOT / "jaxobs").glob("ops/monitoring/boards/*.yaml")]):
        path, source = module.relative_to(ROOT).as_posix(), module.read_text(encoding="utf-8")
        if module.suffix == ".py":
            lines = sentences(source, with_docstrings=not docstrings.within(path, docstrings.EXEMPT))
        elif module.suffix in _TEXTS:
            lines = page_sentences(source, module.suffix)
        else:
            lines = (dashboard_sentences if module.suffix == ".yaml" else table_sentences)(source)
        if not lines:
            continue
        file = folder / f"{path}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(lines.get(number, [])) for number in range(1, max(lines) + 1))
        file.write_text(text + "\n", encoding="utf-8")
        written.append(file)
    return written


def main(arguments: list[str] | None = None) -> int:
    """Writes the files."""
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description="Writes the sentences of the program.")
    parser.add_argument("folder", type=Path, help="where the files go")
    print(f"{len(write(parser.parse_args(arguments).folder))} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
