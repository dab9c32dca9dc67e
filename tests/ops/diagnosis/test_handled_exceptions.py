"""Exceptions that were raised for another one, or while it was handled."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import TRACEBACK, said

RAISED_FROM = "\nThe above exception was the direct cause of the following exception:\n\n"
WHILE_HANDLED = "\nDuring handling of the above exception, another exception occurred:\n\n"
NO_MEMORY = (
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4563 bytes."
)


@pytest.mark.parametrize("between", [RAISED_FROM, WHILE_HANDLED])
@pytest.mark.parametrize(
    ("first", "second", "causes"),
    [
        ("OddError: 7", NO_MEMORY, ["device_out_of_memory"]),
        (NO_MEMORY, "OddError: 7", ["device_out_of_memory"]),
        ("OddError: 7", "OddError: 8", ["program_error"]),
    ],
)
def test_an_exception_that_was_handled(
    tmp_path: Path, between: str, first: str, second: str, causes: list[str]
) -> None:
    assert said(tmp_path, f"{TRACEBACK}{first}\n{between}{TRACEBACK}{second}\n") == ("cause", causes)


def test_the_last_of_three(tmp_path: Path) -> None:
    text = f"{TRACEBACK}OddError: 7\n{WHILE_HANDLED}{TRACEBACK}OddError: 8\n{RAISED_FROM}{TRACEBACK}{NO_MEMORY}\n"
    assert said(tmp_path, text)[1] == ["device_out_of_memory"]


def test_two_that_have_nothing_to_do_with_each_other(tmp_path: Path) -> None:
    """Both are causes."""
    text = f"{TRACEBACK}OddError: 7\nretries with less\n{TRACEBACK}{NO_MEMORY}\n"
    assert said(tmp_path, text)[1] == ["program_error", "device_out_of_memory"]


ANSWER = 'INFO:     10.0.0.5:4113 - "{} HTTP/1.1" {}\n'


@pytest.mark.parametrize(
    ("request_line", "status", "expected"),
    [
        ("POST /predict", "200 OK", ("no_fault", [])),
        ("POST /predict", "500 Internal Server Error", ("no_fault", [])),
        ("POST /predict", "503 Service Unavailable", ("cause", ["program_error"])),
        ("GET /metrics", "200 OK", ("cause", ["program_error"])),
    ],
)
def test_a_server_that_answers_the_next_request(
    tmp_path: Path, request_line: str, status: str, expected: tuple[str, list[str]]
) -> None:
    text = f"{TRACEBACK}OddError: 7\n{ANSWER.format(request_line, status)}"
    assert said(tmp_path, text) == expected
