"""The packages of `.venv` are locked, and a release says what is in it."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from tools import locks, statements


def test_the_lock_has_what_the_project_asks_for() -> None:
    """Each version has hashes, and no package index is named: any may serve them."""
    assert locks.missing() == []
    text = locks.LOCK.read_text()
    assert not re.search(r"https?://|file:|--index|--find-links", text)
    assert all("--hash=sha256:" in block for block in re.split(r"\n(?=\w)", text)[1:])


def test_a_release_lists_components_and_digests(tmp_path: Path) -> None:
    (tmp_path / "jaxobs-1-py3-none-any.whl").write_bytes(b"a wheel")
    statements.write(tmp_path, "1", sys.executable, statements.now())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()}
    bill = statements.sbom(statements.components(sys.executable), [tmp_path / "jaxobs-1-py3-none-any.whl"])
    built = statements.provenance([path for path in tmp_path.iterdir() if path.suffix != ".json"], statements.now())
    (wheel,) = built["subject"]
    (hashed,) = bill["metadata"]["component"]["components"][0]["hashes"]
    assert wheel["digest"]["sha256"] == files[wheel["name"]] == hashed["content"]
    assert {each["name"]: each for each in bill["components"]}["jax"]["licenses"]
    needs = {each["ref"].partition("@")[0]: each["dependsOn"] for each in bill["dependencies"]}
    assert [ref.partition("@")[0] for ref in needs["pkg:pypi/jaxobs"]] == ["pkg:pypi/jax", "pkg:pypi/prometheus-client"]
