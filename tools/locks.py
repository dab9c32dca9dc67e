"""Locks the packages of `.venv`: exact versions with hashes, for every supported Python, without the name of an index.

python -m tools.locks             writes tools/locked.txt with the newest versions that pyproject.toml allows
python -m tools.locks --check     exit code 1 if it does not have what pyproject.toml asks for
python -m tools.locks --audit     looks for known vulnerabilities of what is locked, and says what it could not check
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "tools" / "locked.txt"
EXTRAS, GROUPS = ("cli", "demo"), ("dev", "docs", "programs", "serving")
"""Extras and groups that `tools/setup test` installs."""
AUDIT_SECONDS = 300
_LOCKED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\]+?))?(?: \\)?$", re.MULTILINE)


def wanted() -> list[str]:
    """Returns the requirements of pyproject.toml that the lock is for, extras of jaxobs itself resolved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]

    def resolved(texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            found = re.fullmatch(r"jaxobs\[(.*)\]", text)
            if found:
                for extra in found[1].split(","):
                    yield from resolved(extras[extra])
            else:
                yield text

    groups = project["dependency-groups"]
    named = [*(extras[name] for name in EXTRAS), *(groups[name] for name in GROUPS)]
    build = project["build-system"]["requires"]
    return sorted({*project["project"]["dependencies"], *build, *resolved(text for texts in named for text in texts)})


def locked() -> dict[str, list[tuple[str, str]]]:
    """Returns versions and markers of each locked package."""
    found: dict[str, list[tuple[str, str]]] = {}
    for each in _LOCKED.finditer(LOCK.read_text(encoding="utf-8")):
        found.setdefault(_plain(each["name"]), []).append((each["version"], each["marker"] or ""))
    return found


def missing() -> list[str]:
    """Returns the requirements that no locked version satisfies."""
    has = locked()
    requirements = [Requirement(text) for text in wanted()]
    return [
        str(each)
        for each in requirements
        if not any(each.specifier.contains(version, prereleases=True) for version, _ in has.get(_plain(each.name), ()))
    ]


def write() -> None:
    """Resolves and writes the lock; versions that it has are not kept."""
    uv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    uv += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "asked.in", Path(folder) / "locked.txt"
        asked.write_text("\n".join(wanted()) + "\n", encoding="utf-8")
        subprocess.run([*uv, "--output-file", str(answer), str(asked)], check=True)
        head = (
            "# Written by `python -m tools.locks`; do not edit. `tools/setup test` installs it with hashes required.\n"
        )
        LOCK.write_text(head + answer.read_text(encoding="utf-8"), encoding="utf-8")


def audit() -> int:
    """Asks pip-audit about the locked packages; returns 1 if one is known to be vulnerable."""
    print(f"audit: {len(locked())} packages are locked in tools/locked.txt")
    command = [
        sys.executable,
        "-m",
        "uv",
        "tool",
        "run",
        "--quiet",
        "pip-audit",
        "--requirement",
        str(LOCK),
        "--no-deps",
    ]
    try:
        done = subprocess.run(
            [*command, "--disable-pip", "--format", "json", "--timeout", "15"],
            capture_output=True, text=True, timeout=AUDIT_SECONDS, check=False,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        print(f"audit: NOT CHECKED for known vulnerabilities: pip-audit got no answer within {AUDIT_SECONDS} s")
        return 0
    except ValueError:
        said = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"audit: NOT CHECKED for known vulnerabilities: pip-audit failed: {said[:300]}")
        return 0
    audited = found.get("dependencies", [])
    skipped = [each for each in audited if "skip_reason" in each]
    vulnerable = [each for each in audited if each.get("vulns")]
    if skipped:
        first = skipped[0]["skip_reason"]
        print(f"audit: NOT CHECKED: {len(skipped)} packages; of the first, pip-audit says: {first}")
        print("  " + ", ".join(each["name"] for each in skipped))
    for package in vulnerable:
        names = ", ".join(vulnerability["id"] for vulnerability in package["vulns"])
        print(f"audit: {package['name']} {package['version']}: {names}")
    print(f"audit: {len(audited) - len(skipped)} packages checked for this Python, {len(vulnerable)} vulnerable")
    return 1 if vulnerable else 0


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Does what is asked; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.locks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--audit", action="store_true")
    given = parser.parse_args()
    if given.audit:
        return audit()
    if not given.check:
        write()
    lacking = missing()
    if lacking:
        print("tools/locked.txt lacks: " + ", ".join(lacking) + ". Run: python -m tools.locks", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
