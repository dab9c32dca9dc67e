"""The shell examples: what in them cannot work, and those that can be run."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from helpers import examples
from helpers.examples import Block
from helpers.paths import ROOT
from helpers.run_programs import environment
from jaxobs import actions, cli
from jaxobs.base import config
from jaxobs.base.errors import JaxobsError
from jaxobs.facts.kinds import event_types
from jaxobs.ops.monitoring.generate import kubernetes
from jaxobs.ops.monitoring.site import Site

OTHERS = {
    "amtool", "apt-get", "cat", "cd", "cut", "df", "dmesg", "du", "docker", "echo", "git", "go", "head", "helm",
    "jq", "kill", "kubectl", "ls", "memray", "mv", "nvidia-smi", "pprof", "prometheus", "prometheus-alertmanager",
    "promtool", "ps", "py-spy", "pytest", "sleep", "sort", "ss", "tail", "tensorboard", "timeout", "top", "uniq",
    "vllm", "wc", "xargs", "xpk", "xprof",
}  # fmt: skip
"""Programs of others that examples use, whose arguments are not looked at."""
FILTERS = {"python", "python3", "head", "tail", "sort", "uniq", "cut"}
READERS = FILTERS | {"xargs", "cat"}
NEEDS_MORE = r"\bLOG\b|/proc/|cache verify|stuck-"
"""The program's own output, a process of its own, a program that hangs: a block with these is not run."""
REPORTS = ("last-minutes-", "out-of-memory-", "stuck-")
ROUTES = {"/", "/metrics", "/healthz", "/api/v1/snapshot", "/api/v1/events", "/api/v1/targets", "/api/v1/verdict"}
OPERATORS = {"|", "||", "&&", "&", ";"}

TRAIN = """
import jax, jax.numpy as jnp
import jaxobs
jaxobs.install()

@jax.jit
def train_step(w, batch):
    return w - 0.1 * batch.mean(0)

w = jnp.zeros(4)
for size in (8, 8, 5):
    w = train_step(w, jnp.ones((size, 4)))
"""


def commands(text: str, *, console: bool) -> list[list[str]]:
    """The simple commands of a script as words, without comments and redirections; assignments before them are kept."""
    found: list[list[str]] = []
    for line in script(text, console=console).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        found.append([])
        words = iter(lexer)
        for word in words:
            if word in OPERATORS:
                found.append([])
            elif set(word) <= set("<>"):
                next(words)
            else:
                found[-1].append(word)
    return [each for each in found if each]


def script(text: str, *, console: bool) -> str:
    """Returns what is typed: without prompts, answers and the text of here-documents; a command on one line."""
    if console:
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    return re.sub(r"(?s)<<'(\w+)'\n.*?\n\1(?=\n|$)", "", text).replace("\\\n", " ")


def mistakes(text: str, *, console: bool) -> Iterator[str]:
    """Yields what in a block of commands cannot work, in words."""
    typed = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ ")) if console else text
    if not typed.strip():
        yield "no command in it: a command in a `console` block begins with `$ `"
    read = subprocess.run(["bash", "-n", "-c", typed], capture_output=True, text=True, check=False)
    if read.returncode or read.stderr:
        yield read.stderr
        return
    for words in commands(text, console=console):
        names = [each for each in words if re.match(r"[A-Za-z_]\w*=", each)]
        yield from config.unknown_variables(dict(each.split("=", 1) for each in names))
        rest = [each for each in words if each not in names and each not in ("export", "until", "do", "done")]
        if rest:
            yield from _mistakes_of_one(rest)


def _mistakes_of_one(words: list[str]) -> Iterator[str]:
    name, *arguments = words
    match name:
        case "jaxobs":
            yield from _refused(arguments)
        case "python" | "python3":
            module = arguments[1] if arguments[:1] == ["-m"] else ""
            if module.startswith(("tools.", "benchmarks", "jaxobs")) and importlib.util.find_spec(module) is None:
                yield f"no module {module}"
        case "make":
            targets = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
            yield from (f"make {each}: no such target" for each in arguments if each.isalpha() and each not in targets)
        case "pip":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            for extra in re.findall(r"(?:jaxobs|\.)\[([\w,]+)\]", " ".join(arguments)):
                yield from (
                    f"no extra {each}" for each in extra.split(",") if each not in project["optional-dependencies"]
                )
            yield from (f"{each}: nothing is published" for each in arguments if re.match(r"jaxobs(\[|$)", each))
        case "curl":
            known = ROUTES | {f"/api/v1/actions/{each}" for each in actions.known()}
            for address in (each for each in arguments if each.startswith("http")):
                path = re.sub(r"^\w+://[^/]+|\?.*", "", address) or "/"
                if path not in known:
                    yield f"{address}: no such path"
        case "grep":
            for kind in re.findall(r'"event":\\s\*"(\w+)"', " ".join(arguments)):
                if kind not in event_types():
                    yield f"no event {kind}"
        case "ls":
            files = [each for each in arguments if "*" in each]
            yield from (
                f"no report is called {each}" for each in files if not each.rpartition("/")[2].startswith(REPORTS)
            )
        case _ if name not in OTHERS:
            yield f"{name}: a program that no example used so far; is it spelt right?"
    if name in ("kubectl", "helm"):
        named = [file for flag, file in itertools.pairwise(arguments) if flag == "-f"]
        yield from (f"{each}: no such file" for each in named if not (ROOT / each).exists())
        built = [each for each in arguments if "deploy/" in each and each not in named]
        yield from (f"{each}: nothing generates it" for each in built if not _is_built(each))


def _is_built(folder: str) -> bool:
    """Returns whether `jaxobs generate kubernetes --out DIR` fills a folder below DIR."""
    return any(path.startswith(f"deploy/{folder.partition('/deploy/')[2]}/") for path in kubernetes.files(Site()))


def _refused(arguments: list[str]) -> Iterator[str]:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            cli.parse(arguments)
    except JaxobsError as error:
        yield str(error)
    except SystemExit as exit:
        if exit.code:
            yield printed.getvalue()


# ------------------------------------------------------------------------------------------------- those that run


def runnable() -> list[Block]:
    """Blocks of README and docs that need nothing but a program to train; tutorials run as a whole."""
    elsewhere = ("runbooks", "docs/tutorials")
    return [each for each in examples.blocks("console", "sh") if not each.page.startswith(elsewhere) and _runs(each)]


def _runs(block: Block) -> bool:
    typed = script(block.text, console=block.language == "console")
    if re.search(r"[|&]|9464|<this", typed) or block.not_run:
        return False
    words = [" ".join(each) for each in commands(block.text, console=block.language == "console")]
    return all(
        re.search(r"^(\w+=\S+ )*(python \w+\.py|jaxobs (run|report|compare|generate|explain))", each) for each in words
    )


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A block in a folder with a `train.py`."""
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    typed = "\n".join(line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")) or text
    return _bash(typed, folder, JAXOBS_PORT="0")


def _bash(typed: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", typed], cwd=folder, env=environment(PATH=path, **variables), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def found_here() -> set[str]:
    """Programs of others that are harmless and may be installed."""
    return {each for each in ("ss",) if shutil.which(each)}


def for_a_process() -> list[Block]:
    """Blocks of the runbooks that ask a process, its event log, its reports or its cache; each text once.

    Not `jaxobs cache verify`, which starts a program of the reader's twice.
    """
    found = {}
    for block in examples.blocks("sh"):
        used = {words[0] for words in commands(block.text, console=False)}
        asks = (
            used & (asking := {"jaxobs", "curl", "grep", "ls", "top", "ps"}) and used <= asking | READERS | found_here()
        )
        if block.page.startswith("runbooks") and asks and not re.search(NEEDS_MORE, block.text):
            found.setdefault(block.text, block)
    return list(found.values())


class Process:
    """A process that trains and serves, has a slow and a cold request behind it, and waits; one before it died."""

    PROGRAM = """
import sys, jax, jax.numpy as jnp, numpy as np
import jaxobs
handle = jaxobs.start(port=0)

@jaxobs.jit
def train_step(w, batch):
    return jnp.tanh(w - 0.1 * batch.mean(0) * float(sys.argv[1]))

w = jnp.zeros(4)
for batch in jaxobs.steps(jaxobs.data([np.ones((size, 4)) for size in (8, 8, 5)]), "train", items=len):
    w = train_step(w, batch)
with jaxobs.request("predict"):
    train_step(w, np.ones((3, 4))).block_until_ready()
jax.jit(lambda x: jax.debug.callback(lambda value: None, x))(1)  # is not stored in the cache
jaxobs.watch(loss=float("nan"))
print(handle.url, flush=True)
sys.stdin.read()
if sys.argv[1] == "1":
    jaxobs.jit(lambda x: jnp.zeros((2**48,)) + x, name="huge")(jnp.float32(1))
"""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._variables = {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.001",
            "JAXOBS_EVENT_LOG": str(folder / "events.jsonl"),
            "JAXOBS_ACTIONS": "1",
            "JAXOBS_ACTION_TOKEN": "sesame",
        }

    def __enter__(self) -> Self:
        (self._folder / "train.py").write_text(TRAIN, encoding="utf-8")
        program = [sys.executable, "-c", self.PROGRAM]
        # An earlier process with another constant in its program, so that the second one's key differs; it dies.
        died = subprocess.run(
            [*program, "1"], env=environment(**self._variables), input="", text=True, timeout=120, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert died.returncode == 1
        self._process = subprocess.Popen(
            [*program, "2"],
            env=environment(**self._variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._address = self._process.stdout.readline().strip().removeprefix("http://").rstrip("/")
        assert self._address
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def run(self, text: str) -> subprocess.CompletedProcess[str]:
        """A block, about this process; of a Prometheus, nothing is there."""
        events = self._variables["JAXOBS_EVENT_LOG"]
        text = re.sub(r"\b(HOST\w*|127\.0\.0\.1):9464", self._address, text)
        text = re.sub(r"\b([A-Z_0-9]+\.jsonl|EVENTLOG)\b", events, text)
        text = re.sub(r"\bDIR(ECTORY)?\b", str(self._folder / "cache"), text)
        said = {
            "INSTANCE": self._address,
            "FIRST": self._address,
            "EVENT_LOG": events,
            "JOB": "train",
            "PROMETHEUS": "http://127.0.0.1:9",
        }
        return _bash(text, self._folder, JAXOBS_ACTION_TOKEN="sesame", **said)
