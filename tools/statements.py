"""Statements of a release about itself: components with licences (CycloneDX), and how it was built (in-toto, SLSA).

Neither is signed here: the builder of a published release signs them.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/jaxobs/jaxobs"
LISTING = """
import importlib.metadata, json, re
found = []
for each in importlib.metadata.distributions():
    about = each.metadata
    licence = about.get("License-Expression") or ""
    stated = [text for text in about.get_all("Classifier") or () if text.startswith("License")]
    classifiers = [text.rpartition(" :: ")[2] for text in stated]
    first = (about.get("License") or "").strip().splitlines()
    named = classifiers or [text[:100] for text in first[:1]]
    needs = [re.match(r"[\\w.-]+", text)[0] for text in each.requires or () if "extra ==" not in text]
    said = {"expression": licence, "named": named, "needs": needs}
    found.append({"name": about["Name"], "version": each.version, **said})
print(json.dumps(found))
"""
"""Program that lists the packages of the environment that runs it."""


def components(python: str | Path, without: Sequence[str] = ("pip", "setuptools")) -> list[dict[str, Any]]:
    """Returns the packages of an environment: name, version, licence and what they need."""
    answer = subprocess.run([str(python), "-I", "-c", LISTING], check=True, capture_output=True, text=True).stdout
    found = {_plain(each["name"]): each for each in json.loads(answer)}
    return [each for name, each in sorted(found.items()) if name not in without]


def licence(component: dict[str, Any]) -> str:
    """Returns the licence as the package states it, or `not stated`."""
    return component["expression"] or ", ".join(component["named"]) or "not stated"


def sbom(installed: Sequence[dict[str, Any]], files: Iterable[Path], name: str = "jaxobs") -> dict[str, Any]:
    """Returns a CycloneDX document: the package with its files, and all that was installed with it."""
    known = {_plain(each["name"]): _purl(each) for each in installed}
    (own,) = [each for each in installed if _plain(each["name"]) == name]
    component = _component(own) | {
        "type": "library",
        "components": [
            {"type": "file", "name": path.name, "hashes": [{"alg": "SHA-256", "content": digest(path)}]}
            for path in sorted(files)
        ],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"timestamp": now(), "component": component},
        "components": [_component(each) for each in installed if each is not own],
        "dependencies": [
            {
                "ref": _purl(each),
                "dependsOn": sorted({known[need] for need in map(_plain, each["needs"]) if need in known}),
            }
            for each in installed
        ],
    }


def provenance(files: Iterable[Path], began: str) -> dict[str, Any]:
    """Returns an in-toto statement with SLSA's predicate: the digests of the files, and what they were built from."""
    commit = _git("rev-parse", "HEAD")
    changed = bool(_git("status", "--porcelain"))
    source = {"uri": f"git+{REPOSITORY}", "digest": {"gitCommit": commit}} if commit else {"uri": f"git+{REPOSITORY}"}
    lock = {"uri": f"git+{REPOSITORY}#tools/locked.txt", "digest": {"sha256": digest(ROOT / "tools" / "locked.txt")}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": digest(path)}} for path in sorted(files)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{REPOSITORY}/blob/main/tools/release.py",
                "externalParameters": {"command": "make release"},
                "internalParameters": {
                    "python": platform.python_version(), "system": platform.platform(), "uncommittedChanges": changed,
                },
                "resolvedDependencies": [source, lock],
            },
            "runDetails": {
                "builder": {"id": f"{REPOSITORY}/blob/main/CONTRIBUTING.md#a-release"},
                "metadata": {"invocationId": str(uuid.uuid4()), "startedOn": began, "finishedOn": now()},
            },
        },
    }  # fmt: skip


def write(folder: Path, version: str, python: str | Path, began: str) -> tuple[Path, Path]:
    """Writes both documents about the files of a folder into it, and prints the licences."""
    files = [path for path in folder.iterdir() if path.is_file()]
    installed = components(python)
    print("release: licences of what the wheel installs:")
    for each in installed:
        print(f"  {each['name']} {each['version']}: {licence(each)}")
    bill, built = folder / f"jaxobs-{version}.cdx.json", folder / f"jaxobs-{version}.intoto.json"
    bill.write_text(json.dumps(sbom(installed, files), indent=1) + "\n", encoding="utf-8")
    built.write_text(json.dumps(provenance([*files, bill], began), indent=1) + "\n", encoding="utf-8")
    return bill, built


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _component(package: dict[str, Any]) -> dict[str, Any]:
    stated = licence(package)
    if package["expression"]:
        licences: list[dict[str, Any]] = [{"expression": stated}]
    else:
        licences = [{"license": {"name": name}} for name in package["named"]]
    return {
        "type": "library", "bom-ref": _purl(package), "name": package["name"], "version": package["version"],
        "purl": _purl(package), "licenses": licences,
    }  # fmt: skip


def _purl(package: dict[str, Any]) -> str:
    return f"pkg:pypi/{_plain(package['name'])}@{package['version']}"


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def now() -> str:
    """Returns the time as both documents write it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
    ).stdout.strip()
