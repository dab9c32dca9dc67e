"""The pytest plugin: bounds, baselines and lists of what a test compiles.

Every pytest of an environment that has jaxobs loads this module, so it imports neither JAX nor what works with it
before a test asks. It looks at a test's own call: what its fixtures compile is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxobs.base.errors import MissingExtraError

try:
    import pytest
except ImportError:
    raise MissingExtraError("jaxobs.testing.plugin", "pytest", "pytest") from None

if TYPE_CHECKING:
    from jaxobs.facts.compilations import Compilation
    from jaxobs.testing.baseline_run import BaselineRun
    from jaxobs.testing.compiles import max_compiles
    from jaxobs.testing.watching import Watch

MARKERS = {
    "max_compiles": "max_compiles(n, function=None, *, eager=False, fresh=False): the test fails, with the "
    "reasons, when its call compiles more than n programs (of that function). Once for each function.",
    "jaxobs_baseline": "jaxobs_baseline(*, compilations, flops, memory, compile_seconds): what the test's call "
    "compiles is held against the baseline file. Tolerances replace the configured ones; see --jaxobs-update.",
}
BASELINE = "jaxobs_baseline"


@dataclass
class _Asked:
    """Checks that a test wants."""

    bounds: list[max_compiles] = field(default_factory=list)
    baseline: pytest.Mark | None = None
    lists: list[list[Compilation]] = field(default_factory=list)


_ASKED = pytest.StashKey[_Asked]()
_RUN = pytest.StashKey["BaselineRun"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the baseline."""
    group = parser.getgroup("jaxobs", "what tests compile (jaxobs)")
    group.addoption("--jaxobs-update", action="store_true", help="Update the baseline for the tests that run.")
    group.addoption("--jaxobs-baseline", metavar="FILE", help="The baseline file.")
    group.addoption(
        "--jaxobs-tolerance",
        action="append",
        default=[],
        metavar="QUANTITY=VALUE",
        help="How far compilations, flops, memory or compile_seconds may be from the baseline: `flops=2%%`.",
    )
    parser.addini("jaxobs_baseline", "The baseline file, relative to the directory of this configuration.", default="")
    parser.addini("jaxobs_tolerances", "Like --jaxobs-tolerance, one per line.", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Tells pytest of the markers; looks at the baseline's options where one is given."""
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)
    config.pluginmanager.register(_Reports(config), "jaxobs-reports")
    options = ("jaxobs_update", "jaxobs_tolerance", "jaxobs_baseline")
    if any(config.getoption(each) for each in options) or config.getini("jaxobs_tolerances"):
        _run(config)


def _run(config: pytest.Config) -> BaselineRun:
    if _RUN not in config.stash:
        from jaxobs.testing.baseline_run import BaselineRun

        config.stash[_RUN] = BaselineRun(config)
    return config.stash[_RUN]


# ------------------------------------------------------------------------------------------------ one test


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Reads the test's marks; a wrong one is its failure."""
    asked = item.stash[_ASKED] = _Asked()
    marks = list(item.iter_markers("max_compiles"))
    asked.baseline = item.get_closest_marker(BASELINE)
    if not marks and asked.baseline is None:
        return
    _skip_if_disabled()
    from jaxobs.testing.compiles import max_compiles

    for mark in marks:
        wrong = None
        try:
            bound = max_compiles(*mark.args, **mark.kwargs)
        except (TypeError, ValueError) as error:
            wrong = str(error).removeprefix("max_compiles.__init__() ").rstrip(".")
        if wrong is not None:
            pytest.fail(
                f"{item.nodeid} has a wrong `@pytest.mark.max_compiles`: {wrong}.\n"
                'Write `@pytest.mark.max_compiles(1)` or `@pytest.mark.max_compiles(1, function="train_step")`.',
                pytrace=False,
            )
        # The closest mark comes first, and is the one that holds.
        if not any((each.function, each.eager) == (bound.function, bound.eager) for each in asked.bounds):
            asked.bounds.append(bound)
    if asked.baseline is not None:
        _run(item.config).tolerances(asked.baseline, item.nodeid)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watches the test's call, closest to it, and judges what was compiled once it has passed."""
    asked = item.stash.get(_ASKED, None)
    if asked is None or not (asked.bounds or asked.baseline or asked.lists):
        return (yield)
    from jaxobs.testing import watching

    if asked.baseline is not None or any(each.fresh for each in asked.bounds):
        watching.clear_caches()
    for each in asked.lists:
        each.clear()
    with ExitStack() as stack:
        watch = stack.enter_context(watching.watching(lambda _: True))
        result = yield
        if asked.bounds or asked.baseline is not None:
            _judge(item, asked, watch)
    return result


def _judge(item: pytest.Item, asked: _Asked, watch: Watch) -> None:
    wrong: list[str] = []
    checks: list[Callable[[], None]] = [watch.assert_saw_all]
    checks += [partial(each.check, watch.compilations) for each in asked.bounds]
    for check in checks:
        try:
            check()
        except AssertionError as error:
            wrong.append(str(error))
    if asked.baseline is not None:
        wrong += _run(item.config).judge(item, asked.baseline, watch.compilations)
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Sends what was measured with the test's report, which pytest-xdist's workers hand to the one that writes."""
    report = yield
    if call.when == "call" and _RUN in item.config.stash:
        item.config.stash[_RUN].attach(item, report)
    return report


def _skip_if_disabled() -> None:
    from jaxobs.base import config

    if config.disabled():
        from jaxobs.testing.watching import DISABLED

        pytest.skip(f"{DISABLED} Unset it to run this test.")


# ------------------------------------------------------------------------------------------------ fixtures


@pytest.fixture(name="max_compiles")
def _max_compiles() -> type[max_compiles]:
    """`with max_compiles(1, function="train_step"):` fails when more is compiled inside it."""
    _skip_if_disabled()
    from jaxobs.testing.compiles import max_compiles

    return max_compiles


@pytest.fixture(name="jaxobs_compilations")
def _jaxobs_compilations(request: pytest.FixtureRequest) -> Iterator[list[Compilation]]:
    """Collects what the test's call compiles, as it happens, without operations that JAX dispatches by itself."""
    _skip_if_disabled()
    from jaxobs.testing.watching import watching

    with watching(lambda each: not each.eager) as watch:
        request.node.stash[_ASKED].lists.append(watch.compilations)
        yield watch.compilations


# ------------------------------------------------------------------------------------------------ the whole run


class _Reports:
    """Gathers, writes and reports baselines, in the process that pytest-xdist's workers report to if there are any."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._deselected: list[pytest.Item] = []

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Keeps the entries of deselected tests: they exist, though they do not run."""
        self._deselected += items

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Which tests there are: an entry of another one in their files is out of date."""
        if self._config.getoption("jaxobs_update"):
            _run(self._config).collected(session, [*session.items, *self._deselected])
        self._deselected = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes what came with a test's report."""
        found = getattr(report, BASELINE, None)
        if found is not None and not hasattr(self._config, "workerinput"):
            _run(self._config).take(found)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the baseline, once."""
        if _RUN in self._config.stash and not hasattr(self._config, "workerinput"):
            _run(self._config).finish(session)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """A table of what changed."""
        if _RUN in self._config.stash:
            _run(self._config).tell(terminalreporter)
