"""The files by which `jaxobs top` finds the processes that serve an endpoint."""

import json
import os
import pathlib
import stat
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import jaxobs
from jaxobs.cli import main
from jaxobs.web import endpoints

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """Folder of the files: a runtime folder of the test's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    yield tmp_path / "jaxobs"
    jaxobs.uninstall()


def _mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_endpoint_has_a_private_file_until_it_is_closed(folder: pathlib.Path) -> None:
    assert endpoints.running() == []
    one, two = jaxobs.serve(port=0), jaxobs.serve(port=0)
    assert one is not None and two is not None
    assert {(each.url, each.pid) for each in endpoints.running()} == {(each.url, os.getpid()) for each in (one, two)}
    assert _mode(folder) == 0o700 and [_mode(each) for each in folder.iterdir()] == [0o600, 0o600]
    one.close()
    assert [each.url for each in endpoints.running()] == [two.url]
    jaxobs.uninstall()
    assert list(folder.iterdir()) == []


CHILD = """
import os, sys, jaxobs
handle = jaxobs.start(port=0)
if os.fork() == 0:
    jaxobs.uninstall()  # the parent's endpoint is not the child's to close
    os._exit(0)
os.wait()
print(handle.url, flush=True)
sys.stdin.readline()
"""


def test_a_process_that_was_killed_is_not_found(folder: pathlib.Path) -> None:
    """The next look removes the file of a killed process; a process that ends leaves no file."""
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    urls = [child.stdout.readline().strip() for child in children if child.stdout is not None]
    assert sorted(each.url for each in endpoints.running()) == sorted(urls)
    children[0].kill()
    children[0].communicate()
    assert len(list(folder.iterdir())) == 2
    assert [each.url for each in endpoints.running()] == urls[1:]
    assert len(list(folder.iterdir())) == 1
    children[1].communicate("\n")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"start_tick": 1},  # the number was given to another process
        {"namespace": "pid:[1]"},
        {"url": "http://127.0.0.1:1/\x1b[2J"},
        {"url": "https://user@evil.example/"},
        {"url": 3},
        {"pid": "1"},
        {"pid": True},
        {"program": None},
        {"program": "x" * 5000},
        None,
    ],
)
def test_a_file_that_does_not_fit_is_passed_over(change: dict[str, Any] | None, folder: pathlib.Path) -> None:
    handle = jaxobs.serve(port=0)
    assert handle is not None
    (path,) = folder.iterdir()
    text = json.dumps(json.loads(path.read_text()) | change) if change is not None else "[" * 2000
    path.write_text(text)
    assert endpoints.running() == []


def test_a_folder_that_is_not_private_is_not_used(folder: pathlib.Path) -> None:
    """The endpoint is served all the same."""
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    assert jaxobs.serve(port=0) is not None
    assert list(folder.iterdir()) == [] and endpoints.running() == []


def test_top_finds_the_process(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one; of several, the one that is named: it lists them."""
    one = jaxobs.serve(port=0)
    assert one is not None
    assert main(["top", "--once"]) == 0
    assert f"pid {os.getpid()}" in capsys.readouterr().out
    two = jaxobs.serve(port=0)
    assert two is not None
    assert main(["top", "--once"]) == 2
    told = capsys.readouterr().err
    assert "There are 2 endpoints on this machine" in told and one.url in told and two.url in told
    assert main(["top", "--once", str(two.port)]) == 0
    answers = iter(("3", "no", "2"))
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    from jaxobs.cli import top

    assert top._found() == sorted((one.url, two.url))[1]
