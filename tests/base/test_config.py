"""Settings: where they come from, which wins, and what a wrong one is told."""

import dataclasses
import math
import os
import pathlib
import platform
from typing import Any

import pytest

from jaxobs.base import config
from jaxobs.base.config import Settings, resolve
from jaxobs.base.errors import JaxobsError, SettingError
from tools import settings_types


def test_the_keyword_wins_over_the_variable_and_the_variable_over_the_default() -> None:
    environment = {"JAXOBS_PORT": "9001"}
    assert resolve({"port": 9002}, environment).port == 9002
    assert resolve({}, environment).port == 9001
    assert resolve({}, {}).port == 9464


def test_none_and_an_empty_variable_mean_not_given() -> None:
    """A wrapper script may hand on what it was not given."""
    assert resolve({"port": None}, {"JAXOBS_PORT": "9001"}).port == 9001
    assert resolve({}, {"JAXOBS_PORT": ""}).port == 9464


def test_an_empty_text_given_as_keyword_turns_a_variable_off() -> None:
    assert resolve({"event_log": ""}, {"JAXOBS_EVENT_LOG": "/var/log/events.jsonl"}).event_log == ""


@pytest.mark.parametrize("each", dataclasses.fields(Settings), ids=lambda each: each.name)
def test_every_setting_can_come_from_its_variable(each: dataclasses.Field[Any]) -> None:
    """`JAXOBS_<NAME>` is read for all of them, as the type that they declare."""
    texts = {
        "int": "7", "float": "7.5", "float | None": "7.5", "str": "text", "str | None": "text", "bool": "off",
        "bool | None": "off", "tuple[str, ...]": "a:b, c:d",
    }  # fmt: skip
    values = {
        "int": 7, "float": 7.5, "float | None": 7.5, "str": "text", "str | None": "text", "bool": False,
        "bool | None": False, "tuple[str, ...]": ("a:b", "c:d"),
    }  # fmt: skip
    text, value = texts[str(each.type)], values[str(each.type)]
    if each.metadata["choices"]:
        text = value = each.metadata["choices"][-1]
    assert getattr(resolve({}, {f"JAXOBS_{each.name.upper()}": text}), each.name) == value


@pytest.mark.parametrize("each", dataclasses.fields(Settings), ids=lambda each: each.name)
def test_every_default_fits_its_own_setting(each: dataclasses.Field[Any]) -> None:
    """A default is within the bounds that are asked of everybody else, and has its sentence."""
    if (default := getattr(Settings(), each.name)) is not None:
        assert getattr(resolve({each.name: default}, {}), each.name) == default
    assert each.metadata["help"].endswith(".")


def test_a_path_may_be_a_path_object(tmp_path: pathlib.Path) -> None:
    assert resolve({"event_log": tmp_path / "log"}, {}).event_log == str(tmp_path / "log")


@pytest.mark.parametrize("text", ["1", "true", "YES", "on", True, 1])
def test_truth_in_its_spellings(text: object) -> None:
    assert resolve({"static_values": text}, {}).static_values is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "ninety"), ("port", 9464.5), ("port", True), ("port", [1]), ("port", "9" * 5000), ("port", math.inf),
        ("sample_interval", "often"), ("sample_interval", True), ("static_values", "maybe"), ("static_values", 2),
        ("static_values", 1.0), ("event_log", 3), ("event_log", True), ("event_log", "a\0b"), ("addr", 127),
        ("addr", b"127.0.0.1"), ("instrument", 5), ("instrument", [1, 2]), ("metrics_file", ["a"]),
    ],
)  # fmt: skip
def test_a_wrong_type_names_the_setting_the_value_and_what_it_is_for(name: str, value: object) -> None:
    """Nothing is converted in silence: an event log is never the file `3`."""
    with pytest.raises(SettingError) as caught:
        resolve({name: value}, {})
    message = str(caught.value)
    assert f"`{name}`" in message
    assert repr(value)[:90] in message
    help_of = {each.name: each.metadata["help"] for each in dataclasses.fields(Settings)}
    assert help_of[name] in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", -1), ("port", 65536), ("sample_interval", 0), ("sample_interval", math.nan),
        ("sample_interval", math.inf), ("sample_interval", -5), ("metrics_interval", math.inf),
        ("metrics_interval", 1e9), ("max_functions", 0),
        ("max_events", 0), ("max_events", 10**12), ("event_log_max_bytes", -1),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_told_the_range(name: str, value: float) -> None:
    """Values that would stop the sampler's thread or fill the memory are refused at the door."""
    with pytest.raises(SettingError, match=r"must be (at least|from) [\d.]+") as caught:
        resolve({name: value}, {})
    assert f"`{name}` is {value!r}" in str(caught.value)


def test_a_wrong_variable_is_named_as_the_variable() -> None:
    with pytest.raises(SettingError, match="`JAXOBS_PORT` is 'web', which is not a valid integer"):
        resolve({}, {"JAXOBS_PORT": "web"})


def test_a_wrong_choice_is_told_the_choices() -> None:
    with pytest.raises(SettingError, match=r"`dispatch_timing` is 'some'\. Known values: sampled, all, off"):
        resolve({"dispatch_timing": "some"}, {})


def test_unknown_settings_are_named_together_with_the_known_ones() -> None:
    """A single error names all of them, and guesses what was meant."""
    with pytest.raises(SettingError) as caught:
        resolve({"evnt_log": "x", "zzz": 1}, {})
    message = str(caught.value)
    assert "Unknown settings `evnt_log`, `zzz`" in message
    assert "Did you mean `event_log`?" in message
    assert all(name in message for name in config.names())


def test_setting_errors_are_value_errors_of_ours() -> None:
    assert issubclass(SettingError, ValueError)
    assert issubclass(SettingError, JaxobsError)


def test_a_misspelt_variable_is_noticed() -> None:
    """A misspelt variable gets a warning; settings, switches and other people's variables do not."""
    environment = {"JAXOBS_EVENTLOG": "x", "JAXOBS_PORT": "1", "JAXOBS_DISABLED": "0", "HOME": "/", "JAXOBS": "1"}
    [sentence] = config.unknown_variables(environment)
    assert "`JAXOBS_EVENTLOG`" in sentence
    assert "Did you mean `JAXOBS_EVENT_LOG`?" in sentence
    assert "docs/" not in sentence and "`jaxobs run --help` lists them" in sentence


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("JAXOBS_PEAK", "JAXOBS_PEAK_FLOPS"), ("JAXOBS_DISABLE", "JAXOBS_DISABLED"), ("JAXOBS_PORTS", "JAXOBS_PORT"),
        ("JAXOBS_QQQ", None),
    ],
)  # fmt: skip
def test_a_misspelt_variable_gets_the_nearest_one(variable: str, meant: str | None) -> None:
    """By what follows the prefix, which alone makes any two of them alike."""
    [sentence] = config.unknown_variables({variable: "1"})
    assert (f"Did you mean `{meant}`?" in sentence) if meant else ("Did you mean" not in sentence)


@pytest.mark.parametrize(
    ("value", "off"), [("1", True), ("true", True), ("ON", True), ("0", False), ("", False), ("no", False)]
)
def test_the_switch_that_turns_everything_off(value: str, off: bool) -> None:
    assert config.disabled({"JAXOBS_DISABLED": value}) is off
    assert config.disabled({}) is False


def test_names_of_files_may_tell_processes_apart() -> None:
    """`{pid}` and `{host}` are filled in; the index of the process is known only to what is written later."""
    settings = resolve({"event_log": "log-{pid}.jsonl", "metrics_file": "m-{process_index}-{host}.prom"}, {})
    assert settings.event_log == f"log-{os.getpid()}.jsonl"
    assert settings.metrics_file == f"m-{{process_index}}-{platform.node()}.prom"
    assert resolve({"event_log": "{other}.jsonl"}, {}).event_log == "{other}.jsonl"
    with pytest.raises(SettingError, match=r"`event_log` .* is not known yet when it is opened. Put \{pid\}"):
        resolve({"event_log": "log-{process_index}.jsonl"}, {})
    with pytest.raises(SettingError, match="not in its directory"):
        resolve({"metrics_file": "{process_index}/m.prom"}, {})


def test_the_typed_keywords_are_fresh(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m tools.settings_types` writes them from the declaration, and notices that they are stale."""
    assert settings_types.main(["--check"]) == 0
    monkeypatch.setattr(settings_types, "PROTECTION", ())
    assert settings_types.main(["--check"]) == 1
    assert "Write it with: python -m tools.settings_types" in capsys.readouterr().err
