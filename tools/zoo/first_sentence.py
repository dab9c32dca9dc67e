"""Times the commands of `docs/systems` as a newcomer types them, up to the first sentence of jaxobs about the program.

python -m tools.zoo.first_sentence             measures all systems, and writes docs/systems/README.md: 10 minutes
python -m tools.zoo.first_sentence Haiku Grain  measures these, and keeps the earlier seconds of the others

The commands of a system are those of its section: `pip install`, and then the example under `jaxobs run`, or a server
with its requests. Each system has a new environment, with the versions that the table names; the caches of packages
stay, so a first run of a system only fills them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tools import environments
from tools.zoo import systems
from tools.zoo.__main__ import entries
from tools.zoo.running import ROOT
from tools.zoo.systems import FIRST_SENTENCES, PAGES, System

SECONDS = 1200
PYTHONS = ("3.12", "3.11", "3.13")
"""Versions of Python for a system whose example is no program of the zoo."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PRELUDE = """\
set -e
pip() { uv pip "$@"; }
curl() { command curl --retry 60 --retry-connrefused --retry-delay 1 --fail "$@"; }
"""
"""`uv` has the interface of pip; a server is asked until it listens."""
_VERDICT = re.compile(r"^ (?:FIX|WATCH|OK)  \S", re.MULTILINE)


def commands(system: System) -> str:
    """Returns the commands of a system's page, from `pip install` to `jaxobs explain`; "" if there are none to run."""
    top, section = page_of(system)
    blocks = [*_shell(section)]
    installs = next((each for each in (*blocks, *_shell(top)) if "pip install" in each), "")
    typed = "\n".join(each[2:] for block in blocks for each in block.splitlines() if each.startswith(("$ ", "> ")))
    if not installs:
        return ""
    if typed:
        return f"{_installs(installs)}\n{typed}\njaxobs explain localhost:9464\n"
    if not system.example:
        return installs if "jaxobs explain" in installs and "by hand" not in system.ran else ""
    settings = "\n".join(each for each in installs.splitlines() if each.startswith("export "))
    program = f"examples/systems/{system.example}.py"
    run = f"jaxobs run --port 0 --event-log events.jsonl {program}\njaxobs explain events.jsonl"
    return f"{_installs(installs)}\n{settings}\n{run}\n"


def page_of(system: System) -> tuple[str, str]:
    """Returns the top of a system's page, and the system's section; the top again if the whole page is about it."""
    page, _, anchor = system.page.partition("#")
    top, *sections = re.split(r"^## ", (PAGES / page).read_text(encoding="utf-8"), flags=re.M)
    return top, next((each for each in sections if _anchor(each) == anchor), top)


def _shell(text: str) -> Iterator[str]:
    return (block for language, block in _BLOCK.findall(text) if language in ("", "sh"))


def _anchor(section: str) -> str:
    return re.sub(r"[^\w\- ]", "", section.partition("\n")[0].lower()).replace(" ", "-")


def _installs(block: str) -> str:
    return "\n".join(each for each in block.splitlines() if each.startswith("pip install"))


def measure(system: System, pythons: Sequence[str], pins: Iterable[str], folder: Path) -> dict[str, object]:
    """Returns the seconds that the commands of a system took in a new environment, and a server's compilations.

    Raises:
      SystemExit: a command failed, or jaxobs said nothing about the program; the message has the last lines.
    """
    for port in set(map(int, re.findall(r"localhost:(\d+)", commands(system)))):
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), timeout=1):
            raise SystemExit(f"{system.name} needs port {port}, on which another program listens: end it first.")
    uv = [sys.executable, "-m", "uv"]
    python = next(found for version in pythons if (found := environments.find_python(version)))
    subprocess.run([*uv, "venv", "--quiet", "--python", python, str(folder / "venv")], check=True)
    (folder / "constraints.txt").write_text("\n".join(pins))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA_", "KERAS_"))}
    variables = kept | {
        "VIRTUAL_ENV": str(folder / "venv"),
        "UV_CONSTRAINT": str(folder / "constraints.txt"),
        "PATH": os.pathsep.join((str(folder / "venv" / "bin"), str(Path(sys.executable).parent), kept["PATH"])),
        "JAX_PLATFORMS": "cpu",
    }
    printed, clone = folder / "printed", folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    began = time.monotonic()
    with printed.open("w") as out:
        process = subprocess.Popen(
            ["bash", "-c", _PRELUDE + commands(system)], cwd=clone, env=variables, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        seconds = time.monotonic() - began
        served = _compilations() if "explain localhost:9464" in commands(system) and code in (0, 1) else {}
        with contextlib.suppress(ProcessLookupError):  # a server
            os.killpg(process.pid, signal.SIGKILL)
        subprocess.run(["pkill", "-KILL", "-f", str(folder)], check=False)  # its workers, which have their own groups
    text = printed.read_text()
    if code not in (0, 1) or not _VERDICT.search(text):  # 1: `jaxobs explain` found something to fix
        raise SystemExit(f"{text[-3000:]}\n{system.name} ended with {code} after {seconds:.0f} s, see above.")
    return {"seconds": round(seconds), **served}


def _compilations() -> dict[str, str]:
    with urllib.request.urlopen("http://localhost:9464/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    causes, eager = Counter[str](), 0
    for sample in (each for family in families for each in family.samples if each.name == "jax_compilations_total"):
        if sample.labels["function"] == "<eager>":
            eager += int(sample.value)
        else:
            causes[sample.labels["cause"]] += int(sample.value)
    return dict(zip(("compilations", "causes"), systems.counted(causes, eager), strict=True))


def main() -> int:
    """Measures, writes `first_sentences.json` after each system, and then the table."""
    known = {each.name: each for each in systems.systems() if commands(each)}
    parser = argparse.ArgumentParser(prog="python -m tools.zoo.first_sentence", description="Times the systems' pages.")
    parser.add_argument("names", nargs="*", metavar="SYSTEM", help=f"one of: {', '.join(known)}; all by default")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"no commands of {', '.join(unknown)}; there are those of {', '.join(known)}")
    programs = entries()
    for name in given.names or known:
        system = known[name]
        if system.example:
            row = programs[system.example].row
            pythons, pins = row.pythons, (f"jax=={row.jax}", *row.packages)
        else:
            pythons, pins = PYTHONS, tuple(f"{each.replace(' ', '==')}.*" for each in system.version.split(", "))
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(system, pythons, pins, Path(folder))
        print(f"{name}: {measured}", flush=True)
        found = json.loads(FIRST_SENTENCES.read_text()) | {name: measured}
        FIRST_SENTENCES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    systems.write(programs, {})
    return 0


if __name__ == "__main__":
    sys.exit(main())
