"""The policy's file: what is in it is understood or refused by name."""

import re
import tomllib
from pathlib import Path

import pytest
from helpers.examples import blocks

from jaxobs.base.errors import SettingError
from jaxobs.ops.agent.acting import policy

MISTAKES = Path(__file__).with_name("policy_mistakes.toml")


def read(folder: Path, text: str) -> policy.Policy:
    path = folder / "actions.toml"
    path.write_text(text)
    return policy.read(path)


def test_the_example_of_the_page(tmp_path: Path) -> None:
    (example,) = (each.text for each in blocks("toml") if each.page == "docs/agent.md")
    found = read(tmp_path, example)
    assert found == policy.Policy(
        allow=("A1",), actions=("capture_profile",), dry_run=False, cooldown_seconds={"capture_profile": 3600},
        jobs=(re.compile("train-.*"),), opt_out=("train-payments",), warm_cache=policy.WarmCache(
            event_log="/data/events.jsonl", script="train.py", cache_dir="/data/jax-cache"),
    )  # fmt: skip


def test_an_empty_file_allows_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "") == policy.Policy() and policy.Policy().dry_run and policy.Policy().allow == ()


@pytest.mark.parametrize("mistake", tomllib.loads(MISTAKES.read_text(encoding="utf-8"))["mistakes"], ids=str)
def test_a_mistake_is_named(tmp_path: Path, mistake: dict[str, str]) -> None:
    with pytest.raises(SettingError) as raised:
        read(tmp_path, mistake["text"])
    assert mistake["told"] in str(raised.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"Cannot read .*absent\.toml"):
        policy.read(tmp_path / "absent.toml")
