"""The policy's file: what is in it is understood or refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.examples import blocks

from jaxobs.base.errors import SettingError
from jaxobs.ops.agent.acting import policy


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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("allow = ['A3']", "`allow.0` is 'A3'"),
        ("alow = ['A1']", "`alow` is unknown. Did you mean `allow`?"),
        ("actions = ['capture_profil']", "'capture_profil': input should be 'capture_profile', 'collect_bundle'"),
        ("[cooldown_seconds]\nkill = 5", "`cooldown_seconds.kill` is 'kill': input should be 'capture_profile'"),
        ("[cooldown_seconds]\ndump_memory = 0", "dump_memory` is 0: input should be greater than or equal to 1"),
        ("jobs = ['(']", "`jobs.0` is '(': input should be a valid regular expression"),
        ("share_of_processes = 2", "`share_of_processes` is 2: input should be less than or equal to 1"),
        ("failures = 0", "`failures` is 0: input should be greater than or equal to 1"),
        ("slower = nan", "`slower` is nan"),
        ("dry_run = 'perhaps'", "`dry_run` is 'perhaps'"),
        ("[warm_cache]\nevent_log = 'a'", "`warm_cache.cache_dir` is"),
        ("[warm_cache]\nevent_log = 'a'\ncache_dir='b'\nscrip='c'", "Did you mean `script`?"),
        ("[[maintenance]]\nbegin = 2026-01-01T00:00:00Z\nend = 2026-01-01T00:00:00Z", "a `begin` before its `end`"),
        ("[[maintenance]]\nbegin = 2026-01-01T00:00:00\nend = 2026-01-02T00:00:00", "input should have timezone info"),
        ("allow = [", "is not valid TOML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingError) as raised:
        read(tmp_path, text)
    assert told in str(raised.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"Cannot read .*absent\.toml"):
        policy.read(tmp_path / "absent.toml")
