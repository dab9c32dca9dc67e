"""The baseline over one pytest run: held against each test where it runs, gathered and written where the run ends."""

import os
import shlex
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from jaxobs import internals
from jaxobs.base.errors import JaxobsError, MissingExtraError, SettingError
from jaxobs.facts.compilations import Compilation
from jaxobs.sources.process import versions
from jaxobs.testing import baseline_file, baseline_report, costs
from jaxobs.testing.baseline_file import BaselineError, Entry, Environment

try:
    import pytest
except ImportError:
    raise MissingExtraError("jaxobs.testing.baseline_run", "pytest", "pytest") from None

NAME = "jaxobs-baseline.json"

_MEASURED = pytest.StashKey[dict[str, Any]]()


class BaselineRun:
    """The plugin's side of baselines: file, tolerances, and what the tests measured.

    Raises:
      pytest.UsageError: an option is wrong, or the file that must be updated cannot be read.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.update = bool(config.getoption("jaxobs_update"))
        self.path = _path(config)
        self._taken: list[dict[str, Any]] = []
        self._known: dict[str, list[str]] = {}
        self._told: list[str] = []
        try:
            self._tolerances = _configured(config)
            if self.update:
                _ = self._entries
        except JaxobsError as error:
            raise pytest.UsageError(str(error)) from None

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        return baseline_file.read(self.path)

    @property
    def shown_path(self) -> str:
        """The file as it is called in messages."""
        root = self._config.rootpath
        return str(self.path.relative_to(root)) if self.path.is_relative_to(root) else str(self.path)

    # ------------------------------------------------------------------------------------- where a test runs

    def tolerances(self, mark: pytest.Mark, node: str) -> costs.Tolerances:
        """Returns the tolerances of one test; a wrong mark is the test's failure."""
        source = f"`@pytest.mark.jaxobs_baseline` of {node}"
        wrong = f"{source} accepts only keywords: flops=0.02." if mark.args else None
        try:
            found = costs.tolerances(mark.kwargs.items(), source, self._tolerances)
        except SettingError as error:
            wrong = str(error)
        if wrong is not None:
            pytest.fail(wrong, pytrace=False)
        return found

    def judge(self, item: pytest.Item, mark: pytest.Mark, compilations: Sequence[Compilation]) -> list[str]:
        """Measures, keeps it for the report, and says what is wrong, which is nothing in a run that updates."""
        node = node_of(item)
        try:
            before = self._entries.get(node)
        except BaselineError as error:
            return [str(error)]
        now = Entry(environment=environment(), functions=costs.measured(compilations))
        limits = costs.Tolerances(compilations=0, flops=0, memory=0)
        if not self.update:
            limits = self.tolerances(mark, node)
        found = costs.differences(before.functions, now.functions, limits, compilations) if before is not None else []
        item.stash[_MEASURED] = {
            "node": node,
            "entry": baseline_file.plain(now),
            "rows": [baseline_report.row(node, each) for each in found],
            "known": self._known.get(node.partition("::")[0]),
        }
        if self.update:
            return []
        if before is None:
            return [baseline_report.missing(node, self.shown_path, self._next_step(node))]
        if not any(each.fails for each in found):
            return []
        return [baseline_report.failure(node, self.shown_path, before, now, found, self._next_step(node))]

    def attach(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Sends what was measured with the report; a test that failed measures nothing worth writing down."""
        found = item.stash.get(_MEASURED, None)
        if found is not None:
            del item.stash[_MEASURED]
            if report.passed or not self.update:
                report.jaxobs_baseline = found  # type: ignore[attr-defined]

    def collected(self, session: pytest.Session, items: Iterable[pytest.Item]) -> None:
        """Which marked tests there are in the files that were collected as a whole."""
        if self._config.getoption("lf", False):
            return
        single = {arg.partition("::")[0] for arg in session.config.args if "::" in arg}
        names = {os.path.basename(each) for each in single}
        for item in items:
            file = item.nodeid.partition("::")[0]
            if os.path.basename(file) in names:
                continue
            known = self._known.setdefault(file, [])
            if item.get_closest_marker("jaxobs_baseline") is not None:
                known.append(node_of(item))

    def _next_step(self, node: str) -> str:
        given = self._config.getoption("jaxobs_baseline")
        options = ["--jaxobs-update", *([f"--jaxobs-baseline={given}"] if given else [])]
        return shlex.join(["pytest", *options, node])

    # ------------------------------------------------------------------------------------- where the run ends

    def take(self, found: dict[str, Any]) -> None:
        """Figures that a test measured."""
        self._taken.append(found)

    def finish(self, session: pytest.Session) -> None:
        """Writes the file in a run that updates."""
        if not self.update:
            return
        try:
            self._write()
        except BaselineError as error:
            self._told = [str(error)]
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _write(self) -> None:
        before = baseline_file.read(self.path)
        after = dict(before)
        for found in self._taken:
            node, entry = found["node"], baseline_file.entry_of(found["entry"])
            after[node] = _settled(before.get(node), entry)
        for node in self._outdated(before):
            after.pop(node, None)
        ran = {found["node"] for found in self._taken}
        if after != before or (after and not self.path.exists()):
            baseline_file.write(self.path, after)
        self._told = baseline_report.written(self.shown_path, before, after, ran)

    def _outdated(self, before: Iterable[str]) -> list[str]:
        """Entries of tests that are no more: missing in a file that was collected as a whole, or without a file."""
        known: dict[str, set[str]] = {}
        for found in self._taken:
            if found["known"] is not None:
                known[found["node"].partition("::")[0]] = set(found["known"])
        return [
            node
            for node in before
            if (file := node.partition("::")[0])
            and (node not in known.get(file, {node}) or not (self._config.rootpath / file).exists())
        ]

    def tell(self, reporter: Any) -> None:
        """Writes the changes, at the end of pytest's output."""
        rows = [row for found in self._taken for row in found["rows"]]
        if not rows and not self._told:
            return
        reporter.section("jaxobs baseline")
        for line in [*baseline_report.table(rows), *self._told]:
            reporter.line(line)


def environment() -> Environment:
    """Returns the versions and devices of this process; no backend is woken for it."""
    found = versions()
    platform = internals.default_platform()
    clients = [each for each in internals.clients() if each.platform == platform]
    devices = list(clients[0].devices()) if clients else []
    return Environment(
        jax=found.get("jax"),
        jaxlib=found.get("jaxlib"),
        platform=platform,
        device_kind=str(devices[0].device_kind) if devices else None,
        devices=len(devices) or None,
    )


def _settled(before: Entry | None, now: Entry) -> Entry:
    """Returns the entry to write: seconds that are about the same stay what they were."""
    if before is None:
        return now
    functions = {name: costs.settled(before.functions.get(name), cost) for name, cost in now.functions.items()}
    return Entry(environment=now.environment, functions=functions)


def _path(config: pytest.Config) -> Path:
    """Returns the file: as the command line has it from here, as the configuration has it from there."""
    given = config.getoption("jaxobs_baseline")
    if given:
        return Path(config.invocation_params.dir, given)
    beside = config.inipath.parent if config.inipath is not None else config.rootpath
    return Path(beside, config.getini("jaxobs_baseline") or NAME)


def _configured(config: pytest.Config) -> costs.Tolerances:
    found: costs.Tolerances | None = None
    for lines, source in (
        (config.getini("jaxobs_tolerances"), "The configuration's `jaxobs_tolerances`"),
        (config.getoption("jaxobs_tolerance"), "`--jaxobs-tolerance`"),
    ):
        pairs = [[part.strip() for part in line.partition("=")[::2]] for line in lines]
        found = costs.tolerances([(name, value) for name, value in pairs], source, found)
    assert found is not None
    return found


def node_of(item: pytest.Item) -> str:
    """Returns the test's id, without the group that pytest-xdist's workers append."""
    groups = {str((each.args or (each.kwargs.get("name", "default"),))[0]) for each in item.iter_markers("xdist_group")}
    return item.nodeid.removesuffix("@" + "_".join(sorted(groups))) if groups else item.nodeid
