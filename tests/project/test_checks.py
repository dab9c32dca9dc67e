"""`make test` and `make test-all` together run each test once, whatever fails."""

import errno
import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from helpers import requirements
from helpers.paths import ROOT

from tools import checks, settled

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_part_has_a_marker_a_target_and_commands() -> None:
    declared = {each.partition(":")[0] for each in PYPROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    assert set(checks.BEYOND) <= declared, "declare it among the markers in pyproject.toml"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (parts,) = re.findall(r"^PARTS := (.*)$", makefile, re.M)
    assert tuple(parts.split()) == (*checks.BEYOND, *checks.OWN), "name it in PARTS of the Makefile"
    for part in (*checks.BEYOND, *checks.OWN):
        assert re.search(rf"^test-{part}: ## ", makefile, re.M), "say in the Makefile what it is for"
    assert set(checks.PARTS) == {"lint", "tests", *checks.BEYOND, *checks.OWN, checks.OTHERS}


@pytest.mark.parametrize(
    "chosen", [(), ("slow",), ("versions",), ("ray", "slow"), ("alerts", "browser", "slow"), ("alerts", "versions")]
)
def test_whatever_its_markers_a_test_runs_once(chosen: tuple[str, ...]) -> None:
    known = {marker: marker in chosen for marker in checks.BEYOND}
    first = "tests" if not chosen else next(marker for marker in checks.BEYOND if marker in chosen)
    found = [part for part in ("tests", *checks.BEYOND) if eval(checks.selection(part), {}, dict(known))]
    assert found == [first]
    runs = [checks.PARTS[part] for part in ("tests", *checks.REST)]
    chosen_by = [
        command[command.index("-m", 2) + 1] for commands in runs for command in commands if "pytest" in command
    ]
    assert sum(bool(eval(expression, {}, dict(known))) for expression in chosen_by) == 1


def test_the_rest_prepares_what_its_parts_prepare() -> None:
    prepared = {command for part in checks.REST for command in checks.PARTS[part] if "pytest" not in command}
    assert prepared == {
        command for part in (*checks.BEYOND, *checks.OWN) for command in checks.PARTS[part] if "pytest" not in command
    }


def test_the_workflow_calls_make_alone() -> None:
    """Each command of the workflow is a target of the Makefile; the other steps fetch the sources and tools."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.M)
    assert {"make test", "make ci", "make release"} == set(commands) <= {f"make {target}" for target in targets}
    assert all(step["uses"].startswith("actions/") for step in steps if "run" not in step)


def test_what_fails_hides_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path_factory.mktemp("some tests")
    (folder / "test_them.py").write_text(
        "import pytest\n"
        "def test_right(): pass\n"
        "def test_wrong(): assert 0\n"
        "def test_absent(): pytest.skip('not here')\n"
        "@pytest.fixture\ndef broken(): 1 / 0\n"
        "def test_broken(broken): pass\n"
    )
    monkeypatch.setattr(checks, "ROOT", folder)
    fails, passes = ((sys.executable, "-c", f"raise SystemExit({code})") for code in (3, 0))
    tests = checks.module("pytest", "-q", "-p", "no:cacheprovider", "test_them.py")
    parts = {"lint": (fails, passes, fails), "alerts": (tests,), "lives": (passes,), "zoo": (passes,)}
    monkeypatch.setattr(checks, "PARTS", parts)
    assert checks.main([*parts]) == 1
    told = capfd.readouterr().out.partition("check: summary\n")[2].splitlines()
    assert [re.sub(r"in \d+ s", "in n s", line).strip() for line in told[:-1]] == [
        "lint       FAILED in n s (2 errors)",
        *["python -c 'raise SystemExit(3)' (exit code 3)"] * 2,
        "alerts     FAILED in n s (1 failed, 1 passed, 1 skipped, 1 error)",
        "test_them.py::test_wrong",
        "test_them.py::test_broken",
        "lives      passed in n s",
        "zoo        passed in n s",
    ]
    assert re.fullmatch(r"=+ 1 failed, 1 passed, 1 skipped, 3 errors in [\d.]+s \(\d+ min\) =+", told[-1])
    assert checks.main(["lives"]) == 0


def test_what_a_busy_machine_failed_is_run_again_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    """A fault fails twice; where many tests fail, the machine is not the reason."""
    folder = tmp_path_factory.mktemp("some tests")
    (folder / "test_them.py").write_text(
        "import pathlib, pytest\n"
        "@pytest.mark.parametrize('what', ['[a] b', 'c'])\n"
        "def test_second_time(what):\n"
        "    seen = pathlib.Path(what)\n"
        "    known = seen.exists()\n"
        "    seen.touch()\n"
        "    assert known\n"
        "def test_wrong(): assert 0\n"
    )
    monkeypatch.setattr(checks, "ROOT", folder)
    tests = checks.module("pytest", "-q", "-p", "no:cacheprovider", "test_them.py")
    monkeypatch.setattr(checks, "PARTS", {"tests": (tests,)})
    assert checks.main(["tests"]) == 1
    told = capfd.readouterr().out.partition("check: summary\n")[2]
    assert "FAILED" in told and "(1 failed, 2 passed)" in told and "1 failed, 2 passed in" in told
    assert "      failed, and passed alone: test_them.py::test_second_time[[a] b]\n" in told
    assert "\n      test_them.py::test_wrong\n" in told
    (folder / "c").unlink()
    monkeypatch.setattr(checks, "PARTS", {"tests": ((*tests, "-k", "second"),)})
    assert checks.main(["tests"]) == 0
    assert "failed, and passed alone: test_them.py::test_second_time[c]" in capfd.readouterr().out
    monkeypatch.setattr(checks, "MOST_AGAIN", 0)
    (folder / "c").unlink()
    assert checks.main(["tests"]) == 1


def test_what_is_settled_runs_again_when_a_file_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The test itself, a file that it rests on, and one that is new; and all where REPLAY is set."""
    folder = tmp_path_factory.mktemp("some rules")
    subprocess.run(["git", "init", "-q", folder], check=True)
    monkeypatch.setattr(settled, "ROOT", folder)
    monkeypatch.setattr(settled, "RESTS_ON", {"test_them.py": ("rules",)})
    monkeypatch.delenv("REPLAY", raising=False)
    monkeypatch.setattr(settled, "digest", digest := settled.digest.__wrapped__)
    (folder / "rules").mkdir()
    noted: dict[str, str] = {}
    monkeypatch.setattr(settled, "_noted", lambda: noted)
    for name in ("test_them.py", "rules/a.toml", "rules/new.toml", "rules/a.toml"):
        noted["test_them.py"] = digest("test_them.py")
        assert settled.holds("test_them.py")
        (folder / name).write_text(noted["test_them.py"])
        assert not settled.holds("test_them.py")
    noted["test_them.py"] = digest("test_them.py")
    monkeypatch.setenv("REPLAY", "1")
    assert not settled.holds("test_them.py")


@pytest.mark.parametrize("part", ["lint", "others"])
def test_the_summary_names_what_could_be_noted(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Tests of rules run for minutes where `python -m tools.settled` was not run after a change."""
    monkeypatch.setattr(settled, "RESTS_ON", {"test_new.py": (), "test_old.py": ()})
    monkeypatch.setattr(settled, "holds", lambda test: test == "test_old.py")
    told = checks.summary([checks.Outcome(part)], [], 1.0)
    assert ("\n      test_new.py\n" in told) == (part == "others") and "test_old.py" not in told


@pytest.mark.parametrize(
    ("refusals", "ends"),
    [
        ({"/a": errno.EROFS, "/b": errno.ENOENT}, pytest.skip.Exception),  # an ordinary container
        ({"/a": errno.ENOENT, "/b": errno.EACCES}, pytest.fail.Exception),  # not root, or no controller
    ],
)
def test_ci_makes_control_groups_where_they_can_be_made(
    refusals: dict[str, int], ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    refused = [OSError(number, os.strerror(number), path) for path, number in refusals.items()]
    with pytest.raises(ends, match=r"/b: .*needs root .*--privileged"):
        requirements.no_control_group(refused)
