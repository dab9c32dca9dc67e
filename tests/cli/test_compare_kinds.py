"""`jaxobs compare` on folders of XLA dumps and on profiles: what differs, and what is refused."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from jaxobs.cli import main

TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def dump(folder: Path, **changes: str) -> str:
    """Writes the program of the table as XLA does, with some words replaced."""
    folder.mkdir()
    flag = changes.pop("flag", "false")
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        text = TABLE[stage]
        for old, new in changes.items():
            text = text.replace(TABLE["words"][old], new)
        (folder / f"module_0003.jit_step.{stage}.txt").write_text(text)
    flags = f'xla_dump_to: "{folder}"\nxla_cpu_enable_fast_math: {flag}\n'
    (folder / "module_0003.jit_step.debug_options").write_text(flags)
    return str(folder)


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["compare", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", TABLE["cases"])
def test_what_differs_is_named_and_counted(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = TABLE["cases"][name]
    a, b = dump(tmp_path / "a"), dump(tmp_path / "b", **case.get("changes", {}))
    if "cut" in case:
        path = Path(b, "module_0003.jit_step.cpu_after_optimizations.txt")
        path.write_text(path.read_text()[: case["cut"]])
    code, found = compared(capsys, a, b, "--same", "programs,flags")
    (program,) = found["programs"]
    told = [f"{each['group']} {each['name']}: {each['a']} -> {each['b']}" for each in program["changes"]]
    assert told == case.get("told", [])
    assert (program["same"], program["lowered_alike"]) == (
        case.get("same", "unknown") if "cut" not in case else None,
        case["alike"],
    )
    assert (code, found["unlike"]) == (int(bool(case["unlike"])), case["unlike"])
    assert bool(found["notes"]) == ("cut" in case)
    assert main(["compare", a, b]) == 0
    assert found["headline"][:40] in " ".join(capsys.readouterr().out.split())


def test_two_of_one_kind_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence names what each of them is, and which options it has."""
    log, trace, folder = tmp_path / "a.jsonl", tmp_path / "b.xplane.pb", tmp_path / "empty"
    log.write_text("{}\n")
    trace.write_bytes(b"")
    folder.mkdir()
    made = {"LOG": str(log), "TRACE": str(trace), "EMPTY": str(folder), "DUMP": dump(tmp_path / "dump"), "NONE": "none"}
    for words, sentence in TABLE["refused"].items():
        assert main(["compare", *(made.get(word, word) for word in words.split())]) == 2
        said = capsys.readouterr().err
        assert sentence in said.replace(str(tmp_path), ""), (words, said)


def test_no_file_of_a_folder_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe, a link to nothing and a directory are no programs, and a name cannot write to the terminal."""
    a, b = dump(tmp_path / "a"), dump(tmp_path / "b")
    os.mkfifo(tmp_path / "b" / "module_0004.jit_pipe.before_optimizations.txt")
    (tmp_path / "b" / "module_0005.jit_link.before_optimizations.txt").symlink_to("nothing")
    (tmp_path / "b" / "module_0006.jit_folder.before_optimizations.txt").mkdir()
    (tmp_path / "b" / "module_0007.jit_\x1b[31m.before_optimizations.txt").write_text("HloModule x\n}\n")
    assert main(["compare", a, b]) == 0
    out = capsys.readouterr().out
    assert "1 more is in one folder alone" in " ".join(out.split()) and "\x1b" not in out
