"""Every reader of files and answers, in this process: given bytes, it reads them as its command does."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from jaxobs import cli
from jaxobs.actions.capturing import routes
from jaxobs.base import config
from jaxobs.base.errors import JaxobsError
from jaxobs.compile_cache import directory, entries, events
from jaxobs.compile_cache.warming import plan
from jaxobs.exporters.forms.http_types import BadRequest, Post
from jaxobs.findings.fleet.support.digest import Digest, Programs, decode, decode_listed
from jaxobs.findings.fleet.support.view import View
from jaxobs.findings.standing import Standing
from jaxobs.ops.monitoring import openslo, site
from jaxobs.ops.monitoring.objectives import objectives
from jaxobs.reasons import cache_differences, cache_records
from jaxobs.recorder import predecessors
from jaxobs.testing import baseline_file, costs
from tools.fuzzing.answers import AnsweringOpener
from tools.fuzzing.changes import CANARY, Changer
from tools.fuzzing.incidents import IncidentReaders
from tools.fuzzing.originals import SITE_TOML, SITE_YAML, Originals

USAGE = 2
Case = Callable[[Changer], str]
"""Makes one change, reads what it made, and returns what was changed."""


class WrongOutcomeError(AssertionError):
    """A reader neither read nor refused in a sentence."""


class Readers:
    """The readers, each with a file of its own in the folder of the originals."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals
        self._folder = originals.folder / "changed"
        self._folder.mkdir(exist_ok=True)
        self._log = originals.files["events.jsonl"]
        self._plain = self._folder / "plain.jsonl"
        self._plain.write_bytes(self._log)

    def all(self) -> Mapping[str, Case]:
        """By name."""
        return {
            "explain": self._of_log("explain"),
            "explain --json": self._of_log("explain", "--json"),
            "report": self._of_log("report", "--out", str(self._folder / "report.html")),
            "compare": self._of_log("compare", str(self._plain), before=True),
            "compare --json": self._of_log("compare", str(self._plain), "--json", "--max-step-time", "5%", before=True),
            "cache warm --dry-run": self._of_log("cache", "warm", "--dry-run"),
            "cache warm": self._warm,
            "cache inspect": self._inspect,
            "cache entries": self._entry,
            "cache verify": self._observed,
            "sidecar": self._sidecar,
            "run file": self._run,
            "digest": self._digest,
            "listed programs": self._listed,
            "baseline": self._baseline,
            "profile": self._trace,
            "explain URL": self._answers("explain"),
            "top --once": self._answers("top", "--once"),
            "site.toml": self._site("site.toml", SITE_TOML),
            "site.yaml": self._site("site.yaml", SITE_YAML),
            "slos.yaml": self._slos,
            "environment": self._environment,
            "body of an action": self._body,
            **IncidentReaders(self._originals, self._folder, self._command).all(),
        }

    # --------------------------------------------------------------------------------------------- commands

    def _of_log(self, *words: str, before: bool = False) -> Case:
        def case(changer: Changer) -> str:
            what, data = changer.lines(self._log)
            path = self._file("events.jsonl", data)
            head, rest = words[:1], list(words[1:])
            if words[0] == "cache":
                head, rest = words[:2], list(words[2:])
            code = self._command([*head, *([rest[0]] if before else []), str(path), *(rest[1:] if before else rest)])
            if code == USAGE and _events(data) > 1:
                raise WrongOutcomeError("a log with events was refused for what is wrong with one line")
            return what

        return case

    def _command(self, words: list[str]) -> int:
        out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code: Any = cli.main(words)
        except SystemExit as error:
            code = error.code
        out.flush()
        said = out.buffer.getvalue().decode()
        if code not in (0, 1, 2):
            raise WrongOutcomeError(f"exit code {code!r}")
        if "Traceback" in err.getvalue():
            raise WrongOutcomeError("a traceback")
        if code == 2 and not err.getvalue().startswith("jaxobs: "):
            raise WrongOutcomeError(f"refused without a sentence: {err.getvalue()[:200]}")
        if "--json" in words and code != 2:
            json.loads(said, parse_constant=_no_constant)
        return int(code)

    def _file(self, name: str, data: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(data)
        return path

    # ------------------------------------------------------------------------------------------------ cache

    def _trace(self, changer: Changer) -> str:
        what, data = changer.raw(self._originals.files["trace.xplane.pb"])
        path = str(self._file("trace.xplane.pb", data))
        files = [f"--{name}={self._folder / name}" for name in ("html", "pprof", "perfetto", "folded")]
        self._command(["profile", path, "--json", *files])
        self._command(["profile", path, "--compare", path])
        return what

    def _warm(self, changer: Changer) -> str:
        what, data = changer.lines(self._log)
        work = _allowed(lambda: plan.make(self._file("warm.jsonl", data), (), (), str(self._script()), {}))
        for item in work.items if work is not None else ():
            if item.task is not None:
                _allowed(item.task.arguments)
        if CANARY in sys.modules:
            raise WrongOutcomeError(f"imported {CANARY}")
        return what

    def _script(self) -> Path:
        return self._originals.folder / "program.py"

    def _inspect(self, changer: Changer) -> str:
        what, data = changer.lines(self._log)
        path = self._file("inspect.jsonl", data)
        cache = self._originals.entries[0].parent
        self._command(["cache", "inspect", str(cache), "--json", "--event-log", str(path)])
        directory.writers(path)
        return what

    def _entry(self, changer: Changer) -> str:
        number = changer.number() % len(self._originals.entries)
        what, data = changer.raw(self._originals.entries[number].read_bytes())
        found = entries.read(self._file("jit_f-cache", data))
        if found.state not in (entries.SOUND, entries.BROKEN):
            raise WrongOutcomeError(found.state)
        return what

    def _observed(self, changer: Changer) -> str:
        what, data = changer.lines(self._log)
        folder = self._folder / "observed"
        folder.mkdir(exist_ok=True)
        (folder / "1.jsonl").write_bytes(data)
        events.read(folder)
        return what

    def _sidecar(self, changer: Changer) -> str:
        what, data = changer.lines(self._originals.files[cache_records.FILE])
        folder = self._folder / "sidecar"
        folder.mkdir(exist_ok=True)
        (folder / cache_records.FILE).write_bytes(data)
        sidecar = cache_records.Sidecar(str(folder), most_bytes=len(data) + 1)
        sidecar.refresh()
        records = cache_records.read(folder)
        for mine in records:
            others = [*sidecar.of_key(mine.key), *sidecar.neighbours(mine.function, mine.parts.get("program"))]
            other = cache_differences.nearest(mine, others)
            if other is not None:
                cache_differences.differing(mine, other)
                cache_differences.sentence(mine, other)
        if records:
            sidecar.add(dataclasses.replace(records[0], process="other"))
        return what

    # --------------------------------------------------------------------------------------- in the program

    def _run(self, changer: Changer) -> str:
        what, data = changer.body(self._originals.files["run.json"])
        try:
            found = predecessors.read_attempt(str(self._file("run.json", data)))
        except ValueError:
            return what
        if found is not None:
            earlier = found.then(time.time())
            json.dumps([earlier.down_seconds, sum(earlier.seconds.values()), found.is_alive()], allow_nan=False)
        return what

    def _digest(self, changer: Changer) -> str:
        what, data = changer.body(self._originals.files["digest.json"])
        found = decode(data.decode("utf-8", "surrogateescape"))
        programs = Programs()
        programs.add("step", "def")
        own = Digest(
            process=0, tick=1, usual=0.1, looks=20, steps=200, programs=1, chain=programs.chain(1), waiting=0.9
        )
        if found is not None:
            programs.differ(found)
            view = View(time=time.time(), own=own, count=2, others={found.process: found}, programs=programs.all(),
                        differing={found.process: None})  # fmt: skip
            fleet = Standing(View)
            for _ in range(4):
                for finding, _news in fleet.see(view):
                    json.dumps(finding.summary)
        return what

    def _listed(self, changer: Changer) -> str:
        what, data = changer.body(self._originals.files["listed.json"])
        decode_listed(data.decode("utf-8", "surrogateescape"))
        return what

    def _baseline(self, changer: Changer) -> str:
        cost = costs.Cost(compilations=2, causes={"first_call": 1}, flops=12.0, memory={"temp": 3}, compile_seconds=0.5)
        entry = baseline_file.Entry(
            environment=baseline_file.Environment(
                jax="0.10", jaxlib="0.10", platform="cpu", device_kind="cpu", devices=8
            ),
            functions={"f": cost},
        )
        what, data = changer.body(baseline_file.rendered({"a.py::test": entry}).encode())
        found = _allowed(lambda: baseline_file.read(self._file("baseline.json", data)))
        if found:
            baseline_file.rendered(found)
        return what

    # ---------------------------------------------------------------------------------------------- answers

    def _answers(self, *words: str) -> Case:
        def case(changer: Changer) -> str:
            answers = {name: self._originals.files[name] for name in ("snapshot.json", "events.json")}
            name = "snapshot.json" if changer.number() % 3 else "events.json"
            what, answers[name] = changer.body(answers[name]) if changer.number() % 5 else changer.raw(answers[name])
            with mock.patch("jaxobs.views.access.opener", lambda url, *_: AnsweringOpener(answers)):
                self._command([words[0], "http://127.0.0.1:1", *words[1:]])
            return f"{name}: {what}"

        return case

    # ------------------------------------------------------------------------------------------------ files

    def _site(self, name: str, text: str) -> Case:
        def case(changer: Changer) -> str:
            what, data = changer.words(text)
            _allowed(lambda: site.read(self._file(name, data)))
            return what

        return case

    def _slos(self, changer: Changer) -> str:
        what, data = changer.words(openslo.text(objectives()[:1], "slos"))
        _allowed(lambda: openslo.read(self._file("slos.yaml", data)))
        return what

    def _environment(self, changer: Changer) -> str:
        name = config.names()[changer.number() % len(config.names())]
        what, data = changer.words("1 yes 0.5 9464 text a:b")
        _allowed(lambda: config.resolve({}, {f"JAXOBS_{name.upper()}": data.decode("utf-8", "surrogateescape")}))
        return f"{name}: {what}"

    def _body(self, changer: Changer) -> str:
        what, data = changer.body(b'{"steps": 5, "host": true, "text": "x"}')
        with contextlib.suppress(BadRequest):
            routes._parameters(Post("/api/v1/actions/profile", body=data))
        return what


def _events(data: bytes) -> int:
    """How many lines are untouched."""
    return sum(each.startswith(b'{"time": "2') and each.endswith(b"}") for each in data.splitlines())


def _allowed(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except JaxobsError:
        return None


def _no_constant(name: str) -> None:
    raise WrongOutcomeError(f"{name} in what was printed")
