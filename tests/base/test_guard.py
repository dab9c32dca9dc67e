"""The wall between our failures and the user's program."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from jaxobs.base import guard

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture
def swallowing() -> Iterator[None]:
    """As in a user's process: failures are swallowed."""
    guard.raise_internal_errors(False)
    yield
    guard.raise_internal_errors(True)


@pytest.mark.usefixtures("swallowing")
def test_a_failure_is_counted_by_place_logged_once_and_swallowed(caplog: pytest.LogCaptureFixture) -> None:
    @guard.guard("place.one")
    def fails() -> int:
        raise ValueError("lost the plot")

    assert [fails(), fails(), fails()] == [None, None, None]
    with guard.guarded("place.two"):
        raise KeyError("gone")
    assert guard.internal_errors() == {"place.one": 3, "place.two": 1}
    first, second = caplog.records
    assert "`place.one`" in first.message
    assert "ValueError: lost the plot" in first.message
    assert first.exc_info is not None
    assert "`place.two`" in second.message
    assert first.name == "jaxobs"


@pytest.mark.usefixtures("swallowing")
def test_what_the_system_refuses_has_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    for error in (OSError(errno.EMFILE, "Too many"), MemoryError(), OSError(errno.ENOSPC, "No space left")):
        with guard.guarded(str(error)):
            raise error
    ((text, trace),) = [(each.message, each.exc_info) for each in caplog.records]
    assert "No space left" in text and trace is None and len(guard.internal_errors()) == 3


def test_under_our_own_tests_it_is_raised() -> None:
    """No failure is hidden from those who can fix it; it is counted all the same."""
    with pytest.raises(ZeroDivisionError), guard.guarded("here"):
        _ = 1 / 0
    assert guard.internal_errors() == {"here": 1}


@pytest.mark.usefixtures("swallowing")
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_program_passes(error: type[BaseException]) -> None:
    @guard.guard("here")
    def interrupted() -> None:
        raise error

    with pytest.raises(error):
        interrupted()
    with pytest.raises(error), guard.guarded("here"):
        raise error
    assert guard.internal_errors() == {}


@pytest.mark.usefixtures("swallowing")
def test_code_of_the_program_cannot_end_it_through_us() -> None:
    """JAX would not have called it, or not now."""

    def leaves() -> None:
        raise SystemExit("of the program")

    with guard.guarded("here"):
        leaves()
    assert guard.guard("here")(lambda: leaves())() is None
    assert guard.internal_errors() == {"here": 2}


@pytest.mark.usefixtures("swallowing")
@pytest.mark.parametrize("error", [TimeoutError, SystemExit])
def test_what_the_handler_of_a_signal_raises_passes(error: type[BaseException]) -> None:
    """Else a program that waits for its timeout would wait forever: the signal came while our code ran."""

    def handler(*given: object) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(error), guard.guarded("here"):
            signal.raise_signal(signal.SIGALRM)
        with pytest.raises(error):
            guard.guard("here")(lambda: signal.raise_signal(signal.SIGALRM))()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert guard.internal_errors() == {}


@pytest.mark.usefixtures("swallowing")
@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_a_log_handler_of_the_program_that_raises_does_no_harm(error: type[BaseException]) -> None:
    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise error("the log server is gone")

    handler = Broken()
    guard.logger.addHandler(handler)
    try:
        with guard.guarded("here"):
            raise ValueError
    finally:
        guard.logger.removeHandler(handler)
    assert guard.internal_errors() == {"here": 1}


@pytest.mark.usefixtures("swallowing")
def test_counts_are_exact_under_threads() -> None:
    def fail() -> None:
        for _ in range(1000):
            with guard.guarded("threads"):
                raise ValueError

    threads = [threading.Thread(target=fail) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert guard.internal_errors() == {"threads": 8000}


def test_a_guarded_function_keeps_its_name_and_result() -> None:
    @guard.guard("here")
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    assert (double(4), double.__name__, double.__doc__) == (8, "double", "Twice.")


def test_in_a_users_process_failures_are_swallowed() -> None:
    """Raising is for our own tests: without their variable the same failure is a warning."""
    program = (
        "from jaxobs.base import guard\n"
        "with guard.guarded('here'):\n    1 / 0\n"
        "print(guard.internal_errors())\n"
    )  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAXOBS_")}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "{'here': 1}\n")
    assert "jaxobs failed in `here`" in ran.stderr
