"""Tests that rest on files alone, as rules under promtool: what passed is not run again until one of the files changes.

python -m tools.settled          runs those of which a file has changed, and notes in tests/settled.json what passed
python -m tools.settled --all    runs all of them

Such tests are marked `settled`. Where REPLAY is set in the environment they run, whatever is noted: every Monday in CI.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTED = ROOT / "tests" / "settled.json"
_GENERATED = ("alerts", "dashboards", "deploy", "jaxobs/ops/monitoring")
_RULES = (*_GENERATED, "tests/helpers/rule_checks.py", "tests/helpers/reached_rules.py")
RESTS_ON = {
    "tests/ops/monitoring/test_chart.py": (
        *_GENERATED, "jaxobs/base/version.py", "tests/helpers/crd_checks.py", "tools/go/crds", "tools/go/helm",
        "tools/go/kustomize", "tools/release.py",
    ),
    "tests/ops/monitoring/test_grafana.py": (
        *_GENERATED, "tests/helpers/grafana", "tests/helpers/grafana_panels.py", "tests/helpers/grafana_types.py",
        "tools/npm/grafana",
    ),
    "tests/ops/monitoring/test_linters.py": (
        *_GENERATED, "tools/go/dashboard-linter", "tools/go/pint", "tools/go/pint.hcl", "tools/go/sloth",
    ),
    "tests/ops/monitoring/test_lives.py": (*_RULES, "tools/alert_suites"),
    "tests/ops/monitoring/test_rules.py": _RULES,
    "tests/ops/monitoring/test_weeks.py": (*_GENERATED, "tools/alert_suites", "tools/go/weeks", "tools/weeks"),
}  # fmt: skip
"""Files and folders by the test file that rests on them, in which each test that is marked `settled` counts."""


def holds(test: str) -> bool:
    """Returns whether the marked tests of a file passed with all that they rest on as it is now; no without Git."""
    try:
        return not os.environ.get("REPLAY") and _noted().get(test) == digest(test)
    except (OSError, subprocess.CalledProcessError):
        return False


@functools.cache
def digest(test: str) -> str:
    """Returns a digest of a test file and of all that its marked tests rest on."""
    found = hashlib.sha256()
    for path in (test, *RESTS_ON[test]):
        for file in _files(ROOT / path):
            content = file.read_bytes()
            found.update(f"{file.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", str(path)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    yield from (ROOT / each for each in sorted({*listed} - {""}) if (ROOT / each).is_file())


@functools.cache
def _noted() -> dict[str, str]:
    noted: dict[str, str] = json.loads(NOTED.read_text(encoding="utf-8")) if NOTED.exists() else {}
    return noted


def passes(test: str) -> bool:
    """Runs the marked tests of a file, and returns whether each of them ran and passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", test, "-m", "settled", "-n2", f"--junitxml={report}"]
        ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "CI": "true", "REPLAY": "1"}, check=False)
        if ended.returncode:
            return False
        skipped = [each for each in ElementTree.parse(report).iter("testcase") if each.find("skipped") is not None]
        return not skipped


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: all that had to run passed, and is noted; 1: something did not pass."""
    parser = argparse.ArgumentParser(prog="python -m tools.settled", description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="run also those of which no file has changed")
    given = parser.parse_args(arguments)
    noted = {test: found for test, found in _noted().items() if test in RESTS_ON}
    failed = []
    subprocess.run([ROOT / "tools" / "npm_packages", "grafana"], check=True)
    for test in RESTS_ON:
        if given.all or noted.get(test) != digest(test):
            if passes(test):
                noted[test] = digest(test)
                NOTED.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            else:
                failed.append(test)
    print(f"settled: {len(RESTS_ON) - len(failed)} of {len(RESTS_ON)} test files", *failed, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
