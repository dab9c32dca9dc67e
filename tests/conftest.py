"""Eight virtual CPU devices for everybody, our own failures raised, and nothing of the user's settings."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from helpers import whole as texts

from tools import settled
from tools.quick_xla import quick

if TYPE_CHECKING:
    from helpers.clock import Clock
    from helpers.live_stage import Stage

_THE_USERS = ("GIT_", "JAX_", "JAXOBS_", "OTEL_", "PYTHON", "XLA_")
"""First letters of variables that a user may have set for programs of their own."""
_OF_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "LANG", "LC_ALL", "LC_CTYPE")
"""Python writes UTF-8 where no locale is set; where the C locale is, only `LC_ALL` keeps it from that."""
_KEPT = ("PYTHONUNBUFFERED",)
LONG = (
    "test_drill.py",  # before the programs of the live stage, which run to the end
    "test_tutorials.py", "test_lives.py", "test_fleet.py", "test_verdicts_of_programs.py", "test_rules.py",
    "test_run.py", "test_examples.py", "test_corpus.py", "test_ways_in.py", "test_packaging.py", "test_found_times.py",
    "test_incidents.py", "test_session.py", "test_demo.py", "test_doctor.py", "test_persistent_cache.py",
    "test_files_in_the_way.py", "test_notebook.py", "test_wrapper_hostile.py", "test_termination.py",
)  # fmt: skip
"""Files of tests that take longest, the longest first: a worker that begins one last keeps the others waiting."""
APART = (
    "test_tutorials.py", "test_lives.py", "test_fleet.py", "test_verdicts_of_programs.py", "test_corpus.py",
    "test_versions.py", "test_found_times.py", "test_rehearsals.py", "test_run.py", "test_ways_in.py",
)  # fmt: skip
"""Files of long tests that share nothing: workers take the tests of such a file one by one."""

for _name in [name for name in os.environ if name.startswith(_THE_USERS) and name not in _KEPT]:
    del os.environ[_name]
for _name in _OF_TERMINALS:
    os.environ.pop(_name, None)
    os.unsetenv(_name)  # readline, which pytest imports, sets some of them beside `os.environ`
os.environ["GIT_CONFIG_GLOBAL"] = os.environ["GIT_CONFIG_SYSTEM"] = os.devnull
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"  # what tests ask for is on this machine
os.umask(0o022)
for _number in (signal.SIGINT, signal.SIGHUP):
    # `make test &` in a script, and nohup, start it with these ignored, and so every process that a test starts.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

os.environ["XLA_FLAGS"] = quick("--xla_force_host_platform_device_count=8")
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAXOBS_RAISE_INTERNAL_ERRORS"] = "1"


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing recorded, nothing installed and no failure counted, before the test and after it."""
    from jaxobs.base import guard
    from jaxobs.base.config import Settings
    from jaxobs.facts.events import as_event
    from jaxobs.session import lifecycle
    from jaxobs.state import store
    from jaxobs.state.routes import open_request
    from tools.sentences import refuted

    def clear() -> None:
        lifecycle.uninstall()
        open_request.set(None)  # a test may leave one open, and what a request calls makes no loop
        store.current().configure(Settings())
        store.current().reset()
        guard.reset()

    clear()
    yield
    events, _, _ = store.current().events()
    clear()
    guard.raise_internal_errors(True)
    contradictions = [(each, why) for each in events for why in refuted(as_event(each))]
    assert contradictions == []


@pytest.fixture
def installed(fresh: None) -> None:
    """jaxobs is installed."""
    import jaxobs

    jaxobs.install()


@pytest.fixture
def clock(fresh: None, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time that passes when the test says so."""
    from helpers.clock import Clock

    return Clock(monkeypatch)


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="session")
def live_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Real programs with faults, run once for the tests of the alerts and of the agent; the agent goes on."""
    from helpers.live_stage import everything

    with contextlib.ExitStack() as stack:
        yield everything(tmp_path_factory.mktemp("stage"), stack)


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text, by its name, with the file beside the test: see `helpers.whole`."""
    rewrite = request.config.getoption("--rewrite-texts")
    return functools.partial(texts.compare, request.path.with_suffix(".txt"), rewrite=rewrite)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that writes the texts of `whole` anew."""
    parser.addoption("--rewrite-texts", action="store_true", help="Write the texts that tests compare with anew.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Hands out tests by their files, and those of the files `APART` one by one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if file.rpartition("/")[2] in APART else file

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: no collection of garbage looks through them again, and many tests make one."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests of pages in a browser, skips what is settled, and puts files that take long first."""
    for item in items:
        if item.get_closest_marker("settled") and settled.holds(item.path.relative_to(settled.ROOT).as_posix()):
            item.add_marker(pytest.mark.skip(reason="passed with the same files: REPLAY=1 runs it (tools/settled.py)"))
        if "chrome" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
