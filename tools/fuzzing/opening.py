"""Modules of jaxobs that open something: found in the source, so that none is forgotten.

What comes from outside is attacked by `tools.fuzz_readers --worst`, which notes the modules that open it. The others
stand here, with what they open.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CALLS = frozenset({"open", "fdopen", "read_text", "read_bytes", "urlopen", "stream", "recv"})
_PACKAGED = re.compile(r"resources\.files|\b_HERE\b|os\.devnull|webbrowser|archive\.open|tarfile\.open")
"""Texts that come with jaxobs, what is nothing, and what is inside of a file that is open."""
_MODE = re.compile(r"[wx]b?|ab")

_PROC, _COMES = "figures of the kernel", "texts that come with jaxobs"
OWN = {
    "jaxobs/actions/capturing/on_signal.py": _PROC,
    "jaxobs/base/process.py": _PROC,
    "jaxobs/base/threads.py": _PROC,
    "jaxobs/compile_cache/observer.py": "written, not read",
    "jaxobs/compile_cache/warming/finding.py": "the script that the user names, which is run then",
    "jaxobs/exporters/metrics_file.py": "written, not read",
    "jaxobs/exporters/pushgateway.py": "an answer whose body is not read",
    "jaxobs/ops/diagnosis/known/__init__.py": _COMES,
    "jaxobs/ops/gameday/running.py": "the log of the program that it starts",
    "jaxobs/ops/local_prometheus.py": "the log of the Prometheus that it starts",
    "jaxobs/ops/monitoring/boards/__init__.py": _COMES,
    "jaxobs/ops/monitoring/objectives/__init__.py": _COMES,
    "jaxobs/ops/monitoring/recordings/__init__.py": _COMES,
    "jaxobs/ops/monitoring/rules/__init__.py": _COMES,
    "jaxobs/recorder/host.py": _PROC,
    "jaxobs/recorder/moment.py": _PROC,
    "jaxobs/views/notebook/html.py": _COMES,
}
"""Modules that open nothing from outside, with what it is."""


@dataclass(frozen=True)
class Call:
    """A call that opens something to read."""

    module: str
    text: str
    first: int
    last: int
    """Lines."""


def calls() -> Iterator[Call]:
    """Yields them in the order of the source."""
    for path in sorted((ROOT / "jaxobs").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _opens(node):
                name = str(path.relative_to(ROOT))
                yield Call(name, ast.unparse(node), node.lineno, node.end_lineno or node.lineno)


def as_json() -> str:
    """Returns the lines of calls by file, for `opened/sitecustomize.py`."""
    found: dict[str, list[tuple[int, int]]] = {}
    for call in calls():
        found.setdefault(str(ROOT / call.module), []).append((call.first, call.last))
    return json.dumps(found)


def _opens(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    modes = [each.value for each in call.args[:2] if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    writes = name != "read_text" and any(_MODE.fullmatch(mode) for mode in modes)
    return name in _CALLS and not writes and not _PACKAGED.search(ast.unparse(call))
