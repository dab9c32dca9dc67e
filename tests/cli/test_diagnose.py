"""`jaxobs diagnose` and `jaxobs bundle`: what they print, and their exit codes."""

import hashlib
import json
import urllib.parse
from pathlib import Path

import pytest
from helpers.stub_prometheus import serving

from jaxobs import cli


def log(folder: Path, text: str) -> str:
    (folder / "train.log").write_text(text, encoding="utf-8")
    return str(folder / "train.log")


def test_a_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, "2026-01-31 09:00:00 INFO step 1\nOSError: [Errno 28] No space left on device: '/ckpt'\n")
    assert cli.main(["diagnose", "--log", path]) == 1
    said = capsys.readouterr().out
    for part in ("Cause found.", "[disk_full]", "since 2026-01-31T09:00:00", "train.log:2", "Free space", "runbook:"):
        assert part in said


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, "OSError: [Errno 28] No space left on device: '/ckpt'\n")
    assert cli.main(["diagnose", "--json", "--log", path]) == 1
    body = json.loads(capsys.readouterr().out)
    assert body["verdict"] == "cause"
    assert {"id", "title", "component", "evidence", "fix", "runbook", "onset"} <= set(body["causes"][0])
    assert {each["status"] for each in body["hypotheses"]} <= {"supported", "refuted", "no_data"}
    assert body["missing"] == []


def test_no_fault_and_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "--log", log(tmp_path, "step 1\nstep 2\n")]) == 0
    assert "No fault" in capsys.readouterr().out
    assert cli.main(["diagnose", "--log", log(tmp_path, "process exited with code 137\n")]) == 1
    said = capsys.readouterr().out
    assert "Inconclusive" in said and "dmesg" in said


def test_jobs_of_one_name_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """By namespace and cluster; the empty variable that a runbook has for an alert without the label selects all."""
    with serving() as stub:
        own = {"job": "train", "namespace": "ml", "cluster": "eu", "instance": "a:9464", "function": "f"}
        others = [{**own, **each} for each in ({"namespace": "dev"}, {"cluster": "us"}, {"job": "serve"})]
        counted = [({**each, "instance": f"{number}:9464"}, 1.0) for number, each in enumerate([own, *others])]
        stub.series = {"jax_out_of_memory_total": counted}

        def components(*scope: str) -> set[str]:
            assert cli.main(["diagnose", "--json", f"--prometheus={stub.url}", *scope]) == 1
            causes = json.loads(capsys.readouterr().out)["causes"]
            return {name for each in causes for name in (each["component"], *each["victims"])}

        assert components("--job=train", "--namespace=ml", "--cluster=eu") == {"0:9464"}
        [asked] = [each for each in map(urllib.parse.unquote_plus, stub.asked) if "=jax_out_of_memory_total" in each]
        assert 'jax_out_of_memory_total{cluster="eu", job="train", namespace="ml"}&' in asked
        assert components("--job=train", "--namespace=", "--cluster=eu") == {"0:9464", "1:9464"}
        assert components("--job=", "--namespace=", "--cluster=") == {f"{number}:9464" for number in range(4)}
        assert "namespace" not in stub.asked[-1]


def test_a_bundle_is_written_and_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.log").write_text("OSError: [Errno 28] No space left on device: '/ckpt'\n", encoding="utf-8")
    assert cli.main(["bundle", "--log", "train.log", "--log", "gone.log"]) == 0
    said = capsys.readouterr().out
    (bundle,) = tmp_path.glob("incident-*Z.tar.gz")
    for part in (bundle.name, hashlib.sha256(bundle.read_bytes()).hexdigest(), "files:   1 of 2", "cause (disk_full)"):
        assert part in said
    assert "gone.log: No such file or directory" in said
    assert cli.main(["diagnose", "--bundle", bundle.name]) == 1
    assert "[disk_full]" in capsys.readouterr().out
    assert cli.main(["bundle", "--json", "--log", "train.log", "-o", "b.zip"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["path"], body["diagnosis"]["verdict"]) == ("b.zip", "cause")
