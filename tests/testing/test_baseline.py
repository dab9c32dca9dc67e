"""The baseline file: made, held against, written anew; and what a failure says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

# What pytester's runs in this process import anew it also forgets again; two copies of these would not know each other.
import jaxobs.testing.baseline_run
from jaxobs.base.errors import SettingError
from jaxobs.facts.compilations import Compilation
from jaxobs.testing import baseline_file, baseline_report, costs
from jaxobs.testing.baseline_file import BaselineError, Entry, Environment
from jaxobs.testing.costs import Cost, Tolerances

pytest_plugins = ["pytester"]

MODEL = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest

@jax.jit
def step(w, x):
    return jnp.tanh(x @ w).sum()

def run(*sizes):
    for size in sizes:
        step(np.ones((16, 16), np.float32), np.ones((size, 16), np.float32))

pytestmark = pytest.mark.jaxobs_baseline
"""
TWO = "\ndef test_one():\n    run(2)\n\ndef test_two():\n    run(2, 3)\n    jnp.ones(17) + 1\n"


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with strict settings; a busy machine is no difference worth a line."""
    monkeypatch.setattr(costs, "SLOWER_SECONDS", 60.0)
    for variable in ("CI", "BUILD_NUMBER"):  # in CI pytest tells failures in full, twice
        monkeypatch.delenv(variable, raising=False)
    configure(pytester)
    return pytester


def configure(pytester: pytest.Pytester, *lines: str) -> None:
    strict = ['addopts = "--strict-markers --strict-config -p no:cacheprovider"', 'filterwarnings = ["error"]']
    text = "\n".join(["[tool.pytest.ini_options]", *strict, *lines, ""])
    (pytester.path / "pyproject.toml").write_text(text)


def write(tests: pytest.Pytester, text: str, name: str = "test_model") -> None:
    """A test file, newer than what Python may have compiled of it before."""
    for cached in tests.path.glob(f"__pycache__/{name}.*"):
        cached.unlink()
    (tests.path / f"{name}.py").write_text(text)


def run(tests: pytest.Pytester, *args: str, **outcomes: int) -> str:
    result = tests.runpytest_inprocess(*args)
    result.assert_outcomes(**outcomes)
    return result.stdout.str()


def content(tests: pytest.Pytester) -> Any:
    return json.loads((tests.path / "jaxobs-baseline.json").read_text())


def edit(tests: pytest.Pytester, change: Any) -> None:
    body = content(tests)
    change(body["tests"]["test_model.py::test_two"])
    (tests.path / "jaxobs-baseline.json").write_text(json.dumps(body))


def test_from_nothing_to_a_failure_and_back(tests: pytest.Pytester) -> None:
    """Missing, created, held, exceeded with reasons, and written anew with only what changed."""
    write(tests, MODEL + TWO)
    output = run(tests, failed=2)
    assert "test_model.py::test_one has no entry in the baseline jaxobs-baseline.json. Create it, and commit" in output
    assert "  pytest --jaxobs-update test_model.py::test_one" in output
    assert not (tests.path / "jaxobs-baseline.json").exists()

    output = run(tests, "--jaxobs-update", passed=2)
    assert "jaxobs-baseline.json: 2 added, 0 changed, 0 removed." in output
    body = content(tests)
    assert list(body["tests"]) == ["test_model.py::test_one", "test_model.py::test_two"]
    entry = body["tests"]["test_model.py::test_two"]
    machine = {"jax": jax.__version__, "platform": "cpu", "devices": jax.device_count()}
    assert machine.items() <= entry["environment"].items()
    ((name, cost),) = entry["functions"].items()
    assert (name, cost["compilations"], cost["causes"]) == ("test_model.step", 2, {"first_call": 1, "shape": 1})
    assert cost["flops"] > 1000 and 0 < cost["compile_seconds"] < 60
    assert cost["memory"]["argument"] == 2 * 16 * 16 * 4 + 5 * 16 * 4

    assert "jaxobs baseline" not in run(tests, passed=2)
    before = (tests.path / "jaxobs-baseline.json").read_bytes()

    write(tests, MODEL + TWO.replace("run(2, 3)", "run(2, 3, 5)"))
    output = run(tests, passed=1, failed=1)
    for said in (
        "What test_model.py::test_two compiles is not what the baseline jaxobs-baseline.json has.",
        "  test_model.step  compilations         2    3      +1\n",
        "Compilations that the baseline does not have:\n",
        f"Now:      jax {jax.__version__}, jaxlib {jax.lib.__version__} on {jax.device_count()} x cpu.",
        "  pytest --jaxobs-update test_model.py::test_two",
    ):
        assert said in output
    (reason,) = [line for line in output.splitlines() if "test_model.py:13: `test_model.step`" in line]
    assert "5,16]" in reason
    assert (tests.path / "jaxobs-baseline.json").read_bytes() == before

    output = run(tests, "--jaxobs-update", passed=2)
    assert "jaxobs-baseline.json: 0 added, 1 changed, 0 removed." in output
    assert content(tests)["tests"]["test_model.py::test_one"] == body["tests"]["test_model.py::test_one"]
    run(tests, passed=2)

    write(tests, MODEL + TWO)
    assert "  test_model.step  compilations         3    2      -1\n" in run(tests, passed=1, failed=1)


def test_quantities_and_tolerances(tests: pytest.Pytester) -> None:
    """FLOPs and memory by default, seconds on demand; the mark wins over the command line, that over the file."""
    write(tests, MODEL + TWO)
    run(tests, "--jaxobs-update", passed=2)

    def changed(entry: dict[str, Any]) -> None:
        cost = entry["functions"]["test_model.step"]
        cost["flops"] = round(cost["flops"] / 1.04)
        cost["memory"]["argument"] = round(cost["memory"]["argument"] * 1.2)
        cost["memory"]["temp"] += 1
        cost["compile_seconds"] = 1e-6

    edit(tests, changed)
    output = run(tests, passed=1, failed=1)
    assert [said in output for said in (" flops ", " +4.0 %", " memory (argument) ", " -16.7 %")] == [True] * 4
    assert "memory (temp)" not in output and "compile seconds" not in output

    wide = ("--jaxobs-tolerance", "flops=5%", "--jaxobs-tolerance=memory=0.2")
    run(tests, *wide, passed=2)
    output = run(tests, *wide, "--jaxobs-tolerance", "compile_seconds=2000%", passed=1, failed=1)
    assert " compile seconds " in output
    configure(tests, 'jaxobs_tolerances = ["flops = 5%", "memory = 20%"]')
    run(tests, passed=2)
    assert " flops " in run(tests, "--jaxobs-tolerance=flops=1%", passed=1, failed=1)
    write(tests, MODEL + TWO.replace("def test_two", "@pytest.mark.jaxobs_baseline(flops=0.5)\ndef test_two"))
    run(tests, "--jaxobs-tolerance=flops=1%", passed=2)

    result = tests.runpytest_inprocess("--jaxobs-tolerance=flop=1%")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: `--jaxobs-tolerance` has no quantity `flop`. Quantities: *"])


def test_another_platform_is_told(tests: pytest.Pytester) -> None:
    write(tests, MODEL + TWO)
    run(tests, "--jaxobs-update", "--jaxobs-baseline=cpu.json", passed=2)
    run(tests, "--jaxobs-baseline=cpu.json", passed=2)
    (tests.path / "cpu.json").rename(tests.path / "jaxobs-baseline.json")

    moved = {"jax": "0.6.0", "jaxlib": "0.6.0", "platform": "gpu", "device_kind": "NVIDIA H100", "devices": 4}
    edit(tests, lambda entry: entry.update(environment=moved))
    run(tests, passed=2)
    edit(tests, lambda entry: entry["functions"]["test_model.step"].update(flops=1))
    output = run(tests, passed=1, failed=1)
    here = f"{jax.device_count()} x cpu: their figures cannot be compared."
    assert f"The baseline was made on 4 x gpu (NVIDIA H100), but this is {here}" in output
    assert "Baseline: jax 0.6.0, jaxlib 0.6.0 on 4 x gpu (NVIDIA H100)." in output


def test_an_update_touches_only_what_ran(tests: pytest.Pytester) -> None:
    """Entries of other tests stay; those of tests that are no more go when their file ran as a whole."""
    write(tests, MODEL + TWO)
    write(tests, MODEL + "\ndef test_three():\n    run(4)\n", "test_more")
    run(tests, "--jaxobs-update", passed=3)
    everything = content(tests)

    write(tests, MODEL + TWO.replace("run(2)", "jnp.ones(19) + 1"))
    output = run(tests, "--jaxobs-update", "test_model.py", "-k", "one", passed=1, deselected=1)
    assert "JAX dispatches on its own compiled, so nothing is compared: test_model.py::test_one." in output
    write(tests, MODEL + TWO)
    run(tests, "--jaxobs-update", "test_model.py", "-k", "one", passed=1, deselected=1)

    output = run(tests, "--jaxobs-update", "-k", "two", passed=1, deselected=2)
    assert "jaxobs-baseline.json is unchanged." in output
    assert "did not run or did not pass: test_model.py::test_one, test_more.py::test_three." in output
    assert everything["tests"].keys() == content(tests)["tests"].keys()

    write(tests, MODEL + TWO.replace("test_one", "test_uno") + "    assert False\n")
    run(tests, "--jaxobs-update", "test_model.py::test_uno", passed=1)
    names = [f"test_model.py::test_{name}" for name in ("one", "two", "uno")] + ["test_more.py::test_three"]
    assert list(content(tests)["tests"]) == names

    output = run(tests, "--jaxobs-update", "test_model.py", passed=1, failed=1)
    assert "Removed, because these tests no longer exist or have no mark: test_model.py::test_one." in output
    names.remove("test_model.py::test_one")
    assert list(content(tests)["tests"]) == names
    assert content(tests)["tests"][names[0]] == everything["tests"][names[0]], "a test that failed is not written"

    write(tests, MODEL + "\n@pytest.mark.max_compiles(0)\ndef test_three():\n    run(4, 5)\n", "test_more")
    run(tests, "--jaxobs-update", "test_more.py", failed=1)
    assert content(tests)["tests"][names[-1]] == everything["tests"][names[-1]], "nor one that was judged to fail"

    (tests.path / "test_more.py").unlink()
    run(tests, "--jaxobs-update", "test_model.py::test_uno", passed=1)
    assert list(content(tests)["tests"]) == names[:2]


def test_a_broken_file_is_not_written_over(tests: pytest.Pytester) -> None:
    write(tests, MODEL + TWO)
    path = tests.path / "jaxobs-baseline.json"
    for text, told in (
        ("<<<<<<< HEAD\n{}", "is not valid JSON: *. It contains merge conflict markers. Restore it, or delete it*"),
        ('{"version": 7}', "has version 7, but this jaxobs reads 1. Restore it*"),
        ('{"version": 1, "tests": {"a": {"environment": {}}}}', "has an invalid entry for `a`*"),
    ):
        path.write_text(text)
        result = tests.runpytest_inprocess("test_model.py::test_one")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"The baseline `*jaxobs-baseline.json` {told}"])
        result = tests.runpytest_inprocess("--jaxobs-update")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: The baseline `*jaxobs-baseline.json` {told}"])
        assert path.read_text() == text


def test_a_file_that_cannot_be_written_is_said(tests: pytest.Pytester) -> None:
    write(tests, MODEL + TWO)
    result = tests.runpytest_inprocess("--jaxobs-update", "--jaxobs-baseline=/proc/nowhere/baseline.json")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["The baseline `/proc/nowhere/baseline.json` cannot be written: *"])


@pytest.mark.slow
def test_workers_measure_and_the_controller_writes(tests: pytest.Pytester) -> None:
    group = '@pytest.mark.xdist_group("devices")\n'
    write(tests, MODEL + TWO.replace("def test_two", group + "def test_two"))
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-W", "ignore::DeprecationWarning"]

    def updated() -> str:
        ran = subprocess.run(
            [*command, "--jaxobs-update"], cwd=tests.path, capture_output=True, text=True, timeout=240, check=True
        )
        return ran.stdout

    assert "jaxobs-baseline.json: 2 added, 0 changed, 0 removed." in updated()
    assert list(content(tests)["tests"]) == ["test_model.py::test_one", "test_model.py::test_two"]
    run(tests, passed=2)

    edit(tests, lambda entry: entry["functions"]["test_model.step"].update(flops=1))
    body = content(tests)
    body["tests"]["test_model.py::test_gone"] = body["tests"]["test_model.py::test_one"]
    (tests.path / "jaxobs-baseline.json").write_text(json.dumps(body))
    output = updated()
    assert "Removed, because these tests no longer exist or have no mark: test_model.py::test_gone." in output
    assert "test_model.py::test_two  test_model.step  flops " in output


def test_the_group_is_no_part_of_the_id(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of pytest-xdist append it to the ids of tests in a group, with some versions of pytest."""
    item = request.node
    node = item.nodeid
    assert jaxobs.testing.baseline_run.node_of(item) == node
    item.add_marker(pytest.mark.xdist_group(name="devices"))
    item.add_marker(pytest.mark.xdist_group("a"))
    with monkeypatch.context() as patch:  # pytest asks for it again when it reports this test
        patch.setattr(type(item), "nodeid", f"{node}@a_devices")
        found = jaxobs.testing.baseline_run.node_of(item)
    assert found == node


def compilation(cause: str = "first_call", **fields: Any) -> Compilation:
    made: dict[str, Any] = {
        "function": "model.step", "reason": f"Because of {cause}.", "call_site": "model.py:7",
        "phases": {"trace": 0.5, "compile": 1.0}, "flops": 1000.0, "memory": {"argument": 100, "temp": 50},
    }  # fmt: skip
    return Compilation(time=0.0, cause=cause, **{**made, **fields})


def differing(before: list[Compilation], now: list[Compilation], **tolerances: Any) -> list[tuple[str, str, bool]]:
    found = costs.differences(costs.measured(before), costs.measured(now), Tolerances(**tolerances), now)
    return [(each.quantity, each.change, each.fails) for each in found]


def test_costs_are_added_up_by_function() -> None:
    cost = costs.measured([compilation(), compilation("shape"), compilation(function="add", eager=True)])
    causes, memory = {"first_call": 1, "shape": 1}, {"argument": 200, "temp": 100}
    assert cost == {"model.step": Cost(compilations=2, causes=causes, flops=2000.0, memory=memory, compile_seconds=3.0)}
    cost = costs.measured([compilation(), compilation(flops=None, memory={"temp": 1}, cache="hit")])
    assert cost == {"model.step": Cost(compilations=2, causes={"first_call": 2}, memory={"temp": 51})}


def test_differences_are_of_equal_programs() -> None:
    """Both directions fail; the sums of more programs are not compared with those of fewer; unknown is not zero."""
    one, more = [compilation()], [compilation(), compilation("shape"), compilation("shape")]
    for before, now, expected in (
        (one, one, []),
        (one, more, [("compilations", "+2", True)]),
        (more, one, [("compilations", "-2", True)]),
        (one, [], [("compilations", "-1", True)]),
        (one, [compilation(flops=990.0)], []),
        (one, [compilation(flops=989.0)], [("flops", "-1.1 %", True)]),
        (one, [compilation(flops=None)], []),
        (one, [compilation(memory={"argument": 106, "temp": 50})], [("memory (argument)", "+6.0 %", True)]),
        ([compilation(memory={"argument": 100, "temp": 0})], one, [("memory (temp)", "from nothing", True)]),
    ):
        assert differing(before, now) == expected
    assert differing(one, more, compilations=2) == []


def test_seconds_are_told_and_fail_on_demand() -> None:
    """Seconds of another machine prove nothing; twice as long and a second longer is worth a line."""
    slow, slower, slowest = ([compilation(phases={"compile": each})] for each in (1.0, 1.9, 2.5))
    assert differing(slow, slower) == []
    assert differing(slow, slowest) == [("compile seconds", "+150.0 %", False)]
    assert differing(slow, slower, compile_seconds=0.5) == [("compile seconds", "+90.0 %", True)]
    assert differing(slowest, slow, compile_seconds=0.5) == []


def test_only_additional_causes_are_quoted() -> None:
    before, now = [compilation(), compilation("shape")], [compilation(), compilation("dtype"), compilation("shape")]
    (found,) = costs.differences(costs.measured(before), costs.measured(now), Tolerances(), now)
    assert found.reasons == ("model.py:7: Because of dtype.",)
    (found,) = costs.differences(costs.measured(before), costs.measured(now * 20), Tolerances(), now * 20)
    assert len(found.reasons) == 11
    assert found.reasons[-1] == "and 48 more"


def test_seconds_do_not_churn() -> None:
    cost = Cost(compilations=1, flops=1.0, compile_seconds=1.5)
    for seconds in (0.6, 2.9, None):
        assert costs.settled(cost, Cost(compilations=1, flops=1.0, compile_seconds=seconds)) is cost
    for seconds, flops in ((0.4, 1.0), (3.1, 1.0), (1.6, 2.0)):
        other = Cost(compilations=1, flops=flops, compile_seconds=seconds)
        assert costs.settled(cost, other) is other


def test_tolerances_are_read_strictly() -> None:
    found = costs.tolerances([("flops", "2%"), ("memory", 0.5), ("compilations", "1"), ("flops", " 3 % ")], "The mark")
    assert found == Tolerances(flops=0.03, memory=0.5, compilations=1)
    assert costs.tolerances([("compile_seconds", None)], "It", Tolerances(compile_seconds=1)).compile_seconds is None
    for name, value in (("flops", "x"), ("flops", -1), ("flops", True), ("memory", None), ("compilations", "5%")):
        with pytest.raises(SettingError, match=f"The mark gives `{name}` the tolerance"):
            costs.tolerances([(name, value)], "The mark")


def test_the_file_reads_back(tmp_path: Path) -> None:
    entries = {
        'b.py::test[ü-"x"]': Entry(environment=Environment(jax="1"), functions={}),
        "a.py::test": Entry(functions={"m.z": Cost(compilations=1), "m.a": Cost(compilations=2, flops=0.5)}),
    }
    path = tmp_path / "folder" / "baseline.json"
    for some in (entries, {}):
        baseline_file.write(path, some)
        assert baseline_file.read(path) == some
    baseline_file.write(path, entries)
    text = path.read_text()
    assert text.index("a.py") < text.index("b.py")
    assert text.index("m.a") < text.index("m.z")
    assert '          "flops": 0.5,\n' in text
    assert [each.name for each in path.parent.iterdir()] == ["baseline.json"]
    with pytest.raises(BaselineError, match="cannot be read"):
        baseline_file.read(tmp_path)


def test_the_table_is_bounded() -> None:
    rows = [["t", "f", "flops", "1", "22", "+1"] for _ in range(50)]
    lines = baseline_report.table(rows)
    assert len(lines) == 42
    assert lines[-1] == "and 10 more"
    assert len({len(line) for line in lines[:-1]}) == 1
