"""Hostile programs and other people's tests, without jaxobs and with it: what holds, and what differs, is reported."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import ROOT

from tools.trust import __main__ as trust
from tools.trust import page, running
from tools.trust.case import Case

pytestmark = pytest.mark.slow
EVERY = {case.name: case for cases in trust.chosen().values() for case in cases}


@pytest.mark.parametrize("name", ["sys.setprofile and threading.setprofile", "KeyboardInterrupt inside jit"])
def test_a_hostile_program_holds(name: str) -> None:
    """As to what a user sees: times and memory are for `make trust`, on a machine that does nothing else."""
    judged = running.judge(EVERY[name])
    assert [each for each in judged.wrong if " instead of " not in each or "exit code" in each] == []
    assert set(judged.runs) == set(running.WAYS)


def test_a_program_that_differs_is_reported_and_readme_quotes_the_page() -> None:
    assert page.get(trust.README, "trust") == trust.quoted(ROOT / "docs" / "trust.md")
    source = 'import sys\nfound = "jaxobs" in sys.modules\nprint(found)\nsys.exit(3 * found)'
    judged = running.judge(Case("a program that looks", "for jaxobs", source, without=("run", "start")))
    assert judged.wrong == ["install: exit code 3 instead of 0", "install: output differs: -False | +True"]
    assert "**not held**: install: exit code 3" in trust.row(judged)


def test_an_oracle_names_the_test_that_differs(tmp_path: Path) -> None:
    """A test that jaxobs breaks differs in both ways, one that sees the replacement only there."""
    (tmp_path / "looks_test.py").write_text(
        "import sys\nimport jax\n\ndef test_plain(): assert jax.jit(lambda x: x + 1)(1) == 2\n"
        "def test_sees(): assert 'jaxobs' not in sys.modules\n"
        "def test_replaced(): assert jax.jit.__module__.startswith('jax.') or jax.jit.__module__.startswith('jax._')\n"
    )
    done = subprocess.run([sys.executable, "-m", "tools.oracle", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "1 differ under install, 2 replaced" in done.stdout, done.stdout + done.stderr
    assert "install: looks_test.py::test_sees: passed -> failed" in done.stdout
