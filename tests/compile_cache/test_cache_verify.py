"""`jaxobs cache verify`: a cache that lies is found out, an honest one passes, and the command notices nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.waiting import HANG_SECONDS, until

from jaxobs import cli
from jaxobs.compile_cache import events, trial, verdicts
from jaxobs.compile_cache.comparison import COLD, WARM, Comparison
from jaxobs.compile_cache.events import Observation, Program
from jaxobs.facts.compilations import EAGER

LIARS = Path(__file__).with_name("lying_programs.txt").read_text(encoding="utf-8")

HONEST = """
import os, sys
if "flags" in sys.argv:
    os.environ["XLA_FLAGS"] = f"--xla_cpu_parallel_codegen_split_count={os.getpid()}"
import jax
if "directory" in sys.argv:
    jax.config.update("jax_compilation_cache_dir", os.path.join(os.path.dirname(__file__), "own"))
@jax.jit
def honest(w): return w @ w + 1
honest(jax.numpy.ones((8, 8))).block_until_ready()
"""


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def verified(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, object]]:
    code = cli.main(["cache", "verify", "--json", *map(str, arguments)])
    return code, json.loads(capfd.readouterr().out)


def test_caches_that_lie_are_found_out_function_by_function(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program has six kinds of functions; a shell script starts it, and a `sitecustomize` of the user's runs too."""
    (tmp_path / "liars.py").write_text(LIARS)
    script = tmp_path / "start.sh"
    script.write_text(f"echo starting\nexec '{sys.executable}' '{tmp_path}/liars.py' $1\n")
    users = tmp_path / "users"
    users.mkdir()
    (users / "sitecustomize.py").write_text(f"open({str(tmp_path / 'users.log')!r}, 'a').write(__name__ + '\\n')\n")
    monkeypatch.setenv("PYTHONPATH", f"{users}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert cli.main(["cache", "verify", "--json", "--", "sh", str(script), "given"]) == 1
    out, err = capfd.readouterr()
    body = json.loads(out)
    found = {each["function"]: each for each in body["functions"]}
    reasons = {
        name.removeprefix("__main__."): [miss["reason"] for miss in each["misses"]] for name, each in found.items()
    }
    stores_callbacks = reasons.pop("talkative") == []
    assert reasons == {
        "honest": [], "salted": ["key_differs"], "quick": ["too_fast"], "torn": ["error"], "deleted": ["gone"],
        EAGER: [],
    }  # fmt: skip
    assert (found["__main__.talkative"]["verdict"] == "hit") == stores_callbacks
    assert found["__main__.salted"]["misses"][0]["parts"] == ["program"]
    honest = found["__main__.honest"]
    assert (honest["cold_compiled"], honest["warm_hits"], honest["warm_compiled"]) == (1, 1, 0)
    assert min(honest["cold_seconds"], honest["warm_load_seconds"]) > 0
    assert sum("`__main__.salted`" in problem for problem in body["problems"]) == 1
    assert not any("honest" in problem for problem in body["problems"])
    assert 0 < body["warm"]["last_program_seconds"] < body["warm"]["seconds"]
    assert err.count("argument given") == 2, "what the command prints goes to stderr"
    assert (tmp_path / "users.log").read_text().split() == ["sitecustomize"] * 2


@pytest.mark.slow
def test_an_honest_cache_passes_and_one_in_the_programs_own_place_does_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "honest.py"
    script.write_text(HONEST)
    log = tmp_path / "events.jsonl"
    observed = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), str(script)]
    assert cli.main(["cache", "verify", "--quiet", "--", *observed]) == 0
    out = capfd.readouterr().out
    assert "The warm start hits." in out
    (row,) = [line for line in out.splitlines() if line.startswith("honest ")]
    assert row.endswith("hit") and "1 compiled" in row and "1 hit" in row
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["cache"] for each in logged if each.get("function") == "__main__.honest" and "cache" in each] == [
        "miss",
        "hit",
    ], "the command's own event log is written as ever"
    code, body = verified(capfd, "--", sys.executable, script, "directory")
    assert code == 1
    assert len(body["problems"]) == 1 and str(tmp_path / "own") in body["problems"][0]


def test_a_flag_that_differs_from_process_to_process_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "honest.py"
    script.write_text(HONEST)
    code, body = verified(capfd, "--ignore", "too_fast", "--", sys.executable, script, "flags")
    found = {each["function"]: each for each in body["functions"]}
    (miss,) = found["__main__.honest"]["misses"]
    assert code == 1
    assert miss["reason"] == "key_differs" and "flags" in miss["parts"]
    assert "xla_cpu_parallel_codegen_split_count" in miss["detail"]
    assert "XLA_FLAGS" in miss["advice"]


def test_what_cannot_be_compared_is_said(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, body = verified(capfd, "--", "sh", "-c", "exit 3")
    assert code == 1 and "exit code 3" in body["problems"][0] and "warm" not in body
    assert "SIGKILL" in verified(capfd, "--", "sh", "-c", "kill -9 $$")[1]["problems"][0]
    code, body = verified(capfd, "--timeout", "0.3", "--", "sh", "-c", "sleep 3600")
    assert code == 1 and body["cold"]["timed_out"]
    code, body = verified(capfd, "--", sys.executable, "-c", "pass")
    assert code == 1 and "no Python that imports JAX" in body["problems"][0]
    for arguments, expected, said in (
        (["--quiet", "--", "sh", "-c", "echo why; exit 1"], 1, "why"), (["--", "no-such-thing"], 2, "no-such-thing"),
    ):  # fmt: skip
        assert cli.main(["cache", "verify", *arguments]) == expected
        assert said in capfd.readouterr().err
    monkeypatch.setenv("JAXOBS_DISABLED", "1")
    assert cli.main(["cache", "verify", "--", "true"]) == 2
    for wrong in (["python", "x.py"], ["--ignore", "nonsense", "--", "true"], ["--timeout", "0", "--", "true"], []):
        with pytest.raises(SystemExit, match="2"):
            cli.main(["cache", "verify", *wrong])
    assert list(tmp_path.iterdir()) == [], "temporary directories are gone"


def runs(pid: int) -> bool:
    """Returns whether the process goes on; one that has ended may wait to be reaped by another."""
    try:
        return ") Z " not in Path("/proc", str(pid), "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_command_as_well(tmp_path: Path, number: signal.Signals) -> None:
    command = ["sh", "-c", f"echo $$ > '{tmp_path}/pid'; sleep 3600"]
    pid = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-m", "jaxobs", "cache", "verify", "--", *command],
        env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.DEVNULL,
    ) as verify:  # fmt: skip
        try:
            until(lambda: pid.exists() and pid.read_text().endswith("\n"))
            verify.send_signal(number)
            assert verify.wait(HANG_SECONDS) == 128 + number
        finally:
            verify.kill()
    until(lambda: not runs(int(pid.read_text())))
    assert not list(tmp_path.glob("jaxobs-verify-*"))


def test_a_process_without_jax_gets_nothing_of_ours(tmp_path: Path) -> None:
    """No module, no entry of `sys.path`, before JAX is imported; then it is observed, and still on the same path."""
    variables = trial.environment({**os.environ, "PYTHONPATH": ""}, tmp_path, tmp_path)
    look = (
        "import sys; before = [*sys.path]; assert not any('jaxobs' in name for name in sys.modules); "
        "assert not [entry for entry in before if 'injected' in entry], before; "
        "import jax; from jaxobs.state.store import current; assert current().installed; assert sys.path == before"
    )
    subprocess.run([sys.executable, "-c", look], env=variables, cwd=tmp_path, check=True)
    assert events.read(tmp_path) == Observation(processes=1)


def judged(cold: list[Program], warm: list[Program]) -> dict[str, verdicts.Verdict]:
    found = verdicts.judge(Observation(programs=tuple(cold)), Observation(programs=tuple(warm)))
    return {each.function: each for each in found}


def stored(function: str, key: str, seconds: float = 2.0, **more: object) -> Program:
    return Program(function=function, cache="miss", seconds=seconds, key=key, minimum_seconds=1.0, **more)  # type: ignore[arg-type]


def hit(function: str, key: str, **more: object) -> Program:
    return Program(function=function, cache="hit", seconds=0.01, key=key, **more)  # type: ignore[arg-type]


def test_verdicts_that_need_several_processes_or_bad_luck() -> None:
    refused = {"uncached_because": "not_writer", "uncached_detail": "This is process 1 of 2."}
    found = judged(
        [
            stored("step", "s0"), stored("step", "s1", **refused), stored("init", "i", 1.1), stored("once", "o"),
            stored("shared", "h"), stored("shared", "h", **refused),
            stored("lost", "l"), stored("lost", "l", **refused),
        ],
        [hit("step", "s0"), stored("step", "s1", **refused), hit("init", "i"), stored("new", "n"), hit("shared", "h"),
         hit("shared", "h"), stored("lost", "l", **refused)],
    )  # fmt: skip
    assert {name: (each.verdict, each.fails()) for name, each in found.items()} == {
        "step": ("missed", True), "new": ("missed", True), "init": ("hit", False), "once": ("unused", False),
        "shared": ("hit", False), "lost": ("missed", True),
    }  # fmt: skip
    assert [(str(miss), miss.detail) for miss in found["step"].misses] == [("not_writer", "This is process 1 of 2.")]
    reasons = {name: [miss.reason for miss in found[name].misses] for name in ("new", "lost")}
    assert reasons == {"new": ["not_in_cold_run"], "lost": ["gone"]}, "one process did store what is lost"
    assert found["init"].near_threshold and not found["step"].near_threshold
    assert not found["step"].fails(["not_writer"])


def test_single_operations_below_the_threshold_are_no_failure_but_others_are() -> None:
    fast = {"eager": True, "uncached_because": "too_fast"}
    found = judged(
        [stored("add", "a", **fast), stored("mul", "m", **fast)],
        [stored("add", "a", **fast), stored("mul", "m", **fast)],
    )
    assert list(found) == [EAGER]
    assert (found[EAGER].verdict, found[EAGER].misses[0].count, found[EAGER].fails()) == ("missed", 2, False)
    found = judged([stored("add", "a", eager=True)], [stored("add", "b", eager=True, differs=("flags",))])
    assert found[EAGER].fails() and "flags" in str(found[EAGER].misses[0])


@pytest.mark.parametrize(
    ("reason", "eager", "ignored", "told"),
    [
        ("too_fast", False, ["too_fast"], "excused by --ignore too_fast"),
        ("too_fast", True, [], "except for single operations"),
    ],
)
def test_success_is_not_overstated(reason: str, eager: bool, ignored: list[str], told: str) -> None:
    seen = Observation(programs=(stored("f", "a", eager=eager, uncached_because=reason),), last_program=2.0)
    run = trial.Run(started=1.0, seconds=2.0, code=0)
    comparison = Comparison(command=["true"], ignored=ignored)
    for name in (COLD, WARM):
        comparison.add(name, run, seen, None)
    comparison.judge("cache")
    assert comparison.problems == []
    assert told in [*comparison.as_text()][-1]


def test_every_reason_has_an_advice() -> None:
    for reason in verdicts.REASONS:
        assert len(verdicts.Miss(reason=reason, count=1).advice) > 20
    for part in verdicts.KEY_PARTS:
        assert verdicts.Miss(reason="key_differs", count=1, parts=(part,)).advice == verdicts.PART_ADVICE[part]


def test_the_first_step_is_that_of_the_slowest_process(tmp_path: Path) -> None:
    """A job has started when its last process has; a torn line is skipped."""
    for pid, second in ((1, "05"), (2, "09")):
        lines = [
            {"event": "observed"},
            {"event": "step", "time": f"2026-01-31T09:15:{second}.000000Z"},
            {"event": "step", "time": "2026-01-31T09:16:00.000000Z"},
        ]
        (tmp_path / f"{pid}.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"event": "st')
    assert events.read(tmp_path).first_step == 1769850909.0
