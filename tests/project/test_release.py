"""The packages of `.venv` are locked, and a release says what is in it."""

import hashlib
import json
import sys
from pathlib import Path

from tools import locks, statements


def test_the_lock_has_what_the_project_asks_for() -> None:
    assert locks.missing() == []
    assert not any(word in locks.LOCK.read_text() for word in ("http://", "https://", "file:", "--index", "--find"))


def test_a_release_lists_components_and_digests(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a wheel")
    written = statements.write(tmp_path, "1", sys.executable, statements.now())
    bill, built = (json.loads(path.read_text()) for path in written)
    wheel = hashlib.sha256(b"a wheel").hexdigest()
    assert {each["name"]: each["digest"]["sha256"] for each in built["subject"]}["a.whl"] == wheel
    assert bill["metadata"]["component"]["components"][0]["hashes"][0]["content"] == wheel
    needs = {each["ref"].partition("@")[0]: each["dependsOn"] for each in bill["dependencies"]}
    assert [ref.partition("@")[0] for ref in needs["pkg:pypi/jaxobs"]] == ["pkg:pypi/jax", "pkg:pypi/prometheus-client"]
