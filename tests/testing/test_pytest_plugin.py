"""The pytest plugin as its users have it: markers and fixtures in test files of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

# What pytester's runs in this process import anew it also forgets again; two copies of these would not know each other.
import jaxobs.testing.baseline_run

pytest_plugins = ["pytester"]

MODEL = """
import jax
import numpy as np
import pytest

@jax.jit
def step(x):
    return x * 2

@jax.jit
def other(x):
    return x + 1

def run(fun, *sizes):
    for size in sizes:
        fun(np.ones(size, np.float32))
"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for variable in ("CI", "BUILD_NUMBER"):  # in CI pytest tells failures in full, twice
        monkeypatch.delenv(variable, raising=False)
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        addopts = "--strict-markers --strict-config -p no:cacheprovider"
        filterwarnings = ["error"]
        """
    )
    return pytester


def test_the_marker_bounds_the_call(tests: pytest.Pytester) -> None:
    tests.makepyfile(
        MODEL
        + """
@pytest.fixture
def warm():
    run(step, 2)

@pytest.mark.max_compiles(1, function="step", fresh=True)
def test_within():
    run(step, 2)
    run(other, 2, 3)

@pytest.mark.max_compiles(0)
def test_fixtures_do_not_count(warm):
    run(step, 2)

@pytest.mark.max_compiles(1, function="step", fresh=True)
@pytest.mark.max_compiles(0, function="other", fresh=True)
def test_too_many():
    run(step, 2, 3)
    run(other, 2)

@pytest.mark.max_compiles(0)
class TestClass:
    @pytest.mark.max_compiles(1, fresh=True)
    def test_closest_holds(self):
        run(step, 2)

    def test_class_holds(self):
        run(step, 7)

@pytest.mark.max_compiles(0)
def test_own_failure():
    run(step, 11)
    assert 1 == 2
"""
    )
    result = tests.runpytest_inprocess()
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "2 compilations of `step`, where at most 1 is allowed:",
            "  1. test_the_marker_bounds_the_call.py:*: First call of `*.step`*",
            "  2. test_the_marker_bounds_the_call.py:*: `*.step`: *float32[[]2]*float32[[]3]*",
            "1 compilation of `other`, where at most 0 are allowed:",
            "1 compilation, where at most 0 are allowed:",
            "E       assert 1 == 2",
        ]
    )
    assert "jaxobs/testing" not in result.stdout.str()
    assert result.stdout.str().count("where at most") == 3


WRONG = {
    "max_compiles": "has a wrong `@pytest.mark.max_compiles`: missing 1 required positional argument: 'n'.",
    'max_compiles("two")': "has a wrong `@pytest.mark.max_compiles`: `n` is 'two', but must be an integer*",
    'max_compiles(1, functoin="step")': "has a wrong `*`: got an unexpected keyword argument 'functoin'*",
    "jaxobs_baseline(flop=0.1)": "has no quantity `flop`. Quantities: compilations, flops, memory, compile_seconds.",
    'jaxobs_baseline(flops="much")': "gives `flops` the tolerance 'much', but it must be a part of the baseline*",
    "jaxobs_baseline(3)": "accepts only keywords: flops=0.02.",
}
"""Marks, each with what is said of the test that has it."""


def test_wrong_markers_fail_their_test(tests: pytest.Pytester) -> None:
    marked = [f"@pytest.mark.{mark}\ndef test_{number}(): ..." for number, mark in enumerate(WRONG)]
    tests.makepyfile("\n".join(["import pytest", *marked]))
    result = tests.runpytest_inprocess()
    result.assert_outcomes(errors=6)
    right = 'Write `@pytest.mark.max_compiles(1)` or `@pytest.mark.max_compiles(1, function="train_step")`.'
    result.stdout.fnmatch_lines_random([right, *(f"*::test_{n} {said}" for n, said in enumerate(WRONG.values()))])
    result.stdout.no_fnmatch_line("*During handling*")


def test_fixtures(tests: pytest.Pytester) -> None:
    tests.makepyfile(
        MODEL
        + """
def test_factory(max_compiles):
    with max_compiles(1, function="step") as found:
        run(step, 2)
    assert [each.cause for each in found] == ["first_call"]
    with pytest.raises(AssertionError, match="where at most 0 are allowed"), max_compiles(0):
        run(step, 3)

@pytest.fixture
def setup_compiles(jaxobs_compilations):
    import jaxobs
    run(other, 5)
    assert len(jaxobs_compilations) == 1
    jaxobs.uninstall()

def test_list(jaxobs_compilations, setup_compiles):
    assert jaxobs_compilations == []
    run(step, 5)
    assert [each.function.rpartition(".")[2] for each in jaxobs_compilations] == ["step"]

def test_late(request):
    found = request.getfixturevalue("jaxobs_compilations")
    run(step, 6)
    assert len(found) == 1
"""
    )
    tests.runpytest_inprocess().assert_outcomes(passed=3)
    from jaxobs.state import store

    assert not store.current().installed


def test_disabled_skips_with_the_reason(tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that cannot see anything must not pass."""
    monkeypatch.setenv("JAXOBS_DISABLED", "1")
    tests.makepyfile(
        MODEL
        + """
@pytest.mark.max_compiles(0)
def test_marker(): ...

@pytest.mark.jaxobs_baseline
def test_baseline(): ...

def test_factory(max_compiles): ...

def test_list(jaxobs_compilations): ...

def test_without(): ...
"""
    )
    result = tests.runpytest_inprocess("-rs")
    result.assert_outcomes(skipped=4, passed=1)
    result.stdout.fnmatch_lines(["SKIPPED *`JAXOBS_DISABLED` is set, so jaxobs sees no compilations. Unset it to run*"])


def test_it_is_there_and_costs_next_to_nothing(tmp_path: Path) -> None:
    """Loaded by its entry point into every pytest: six small modules without JAX."""
    (tmp_path / "test_plain.py").write_text("def test_plain(): pass\n")
    (tmp_path / "conftest.py").write_text(
        "import json, sys\n"
        "def pytest_sessionfinish(session):\n"
        "    ours = sorted(each for each in sys.modules if each.partition('.')[0] == 'jaxobs')\n"
        "    named = session.config.pluginmanager.has_plugin('jaxobs')\n"
        "    print('\\nFOUND', json.dumps([ours, 'jax' in sys.modules, named]))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "."]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    line = next(line for line in ran.stdout.splitlines() if line.startswith("FOUND"))
    ours, with_jax, named = json.loads(line.removeprefix("FOUND "))
    assert ours == [
        "jaxobs", "jaxobs.base", "jaxobs.base.errors", "jaxobs.base.version", "jaxobs.testing", "jaxobs.testing.plugin",
    ]  # fmt: skip
    assert (with_jax, named) == (False, True)


def test_pytest_does_not_warn_where_jaxobs_was_first() -> None:
    """As under `jaxobs run -m pytest`, from a wheel: with `-W error` that warning would end pytest."""
    from _pytest.assertion.rewrite import AssertionRewriter

    assert AssertionRewriter.is_rewrite_disabled(jaxobs.__doc__ or "")


def test_markers_and_options_are_listed(tests: pytest.Pytester) -> None:
    markers = ["@pytest.mark.max_compiles(n, function=None, *, eager=False, fresh=False): *", "@pytest.mark.jaxobs_b*"]
    tests.runpytest_inprocess("--markers").stdout.fnmatch_lines(markers)
    options = ["*--jaxobs-update*", "*--jaxobs-baseline=FILE*", "*--jaxobs-tolerance=QUANTITY=VALUE*"]
    tests.runpytest_inprocess("--help").stdout.fnmatch_lines(options)


def test_clearing_wakes_no_backend() -> None:
    code = """
import jax
from jaxobs.testing import max_compiles
from jaxobs.testing.baseline_run import environment
with max_compiles(0, fresh=True):
    pass
print(environment())
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert f"jax='{jax.__version__}'" in ran.stdout
    assert "platform=None" in ran.stdout
