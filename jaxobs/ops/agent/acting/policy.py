"""What a place allows the agent to do: a small TOML file, checked as it is read.

allow = ["A1"]                      # classes; A2 needs an approval for each action besides
actions = ["capture_profile"]       # of these classes only these; all of them by default
dry_run = false                     # true by default: decide and log, do nothing
jobs = ["train-.*"]                 # regular expressions; other jobs are left alone
opt_out = ["train-payments"]        # these too
token_variable = "JAXOBS_ACTION_TOKEN"

[cooldown_seconds]
capture_profile = 3600

[warm_cache]
event_log = "/data/events.jsonl"
script = "train.py"
cache_dir = "/data/jax-cache"
"""

from __future__ import annotations

import datetime
import fnmatch
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

from jaxobs.base.errors import MissingExtraError, SettingError
from jaxobs.base.suggestions import did_you_mean
from jaxobs.ops.agent.acting.declarations import Class

_STRICT: Mapping[str, Any] = {"extra": "forbid", "allow_inf_nan": False}
_MOST_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A time in which the agent does nothing."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    begin: datetime.datetime
    end: datetime.datetime
    jobs: str = "*"
    """Pattern of the jobs, as of a shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmCache:
    """What `warm_cache` compiles; nothing of it comes from an alert or a process."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    event_log: str
    """Event log of a run, as `jaxobs cache warm` takes it."""
    cache_dir: str
    script: str | None = None
    module: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The choices; without a file there is no policy, and the agent does nothing."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    allow: tuple[Class, ...] = ()
    """Classes of actions that may be done at all."""
    actions: tuple[str, ...] | None = None
    """Of these classes only these actions; all of them by default."""
    dry_run: bool = True
    """Whether to decide and log, and do nothing."""
    jobs: tuple[str, ...] = (".+",)
    """Regular expressions for the jobs that may be touched."""
    opt_out: tuple[str, ...] = ()
    """Patterns, as of a shell, of jobs or targets that are left alone."""
    token_variable: str = "JAXOBS_ACTION_TOKEN"
    """Environment variable with the processes' setting `action_token`."""
    steps: int = 5
    """Steps that a profile covers."""
    cooldown_seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds until an action may be repeated on the same target, by action."""
    per_job_an_hour: int = 4
    """Actions on one job in an hour."""
    share_of_processes: float = 0.1
    """Of a job's processes, how many may be touched within an hour; one may always be."""
    approval_minutes: float = 30.0
    """How long an approval holds."""
    failures: int = 3
    """After so many failures in a row the breaker opens, and only a person closes it."""
    slower: float = 1.5
    """A step that takes so many times longer after an action than before is a failure of the action."""
    maintenance: tuple[Maintenance, ...] = ()
    warm_cache: WarmCache | None = None

    def __post_init__(self) -> None:
        for each in self.jobs:
            try:
                re.compile(each)
            except re.error as error:
                raise SettingError(f"`jobs`: {each!r} is not a valid regular expression: {error}.") from error
        for name, least, most in (
            ("steps", 1, 1000), ("per_job_an_hour", 1, 1000), ("share_of_processes", 0, 1),
            ("approval_minutes", 1, 1440), ("failures", 1, 100), ("slower", 1.05, 100),
        ):  # fmt: skip
            if not least <= getattr(self, name) <= most:
                raise SettingError(f"`{name}` is {getattr(self, name):g}, but must be from {least:g} to {most:g}.")
        for name, seconds in self.cooldown_seconds.items():
            if not 1 <= seconds <= 30 * 86_400:
                raise SettingError(f"`cooldown_seconds.{name}` is {seconds:g}, but must be from 1 s to 30 days.")

    def wants(self, job: str) -> bool:
        """Whether a job may be touched."""
        return any(re.fullmatch(each, job) for each in self.jobs)

    def opted_out(self, *names: str) -> bool:
        """Whether one of these names, of a job or a target, is to be left alone."""
        return any(fnmatch.fnmatchcase(name, each) for each in self.opt_out for name in names)

    def in_maintenance(self, job: str, now: float) -> Maintenance | None:
        """The window that covers a job at a time, in seconds since the epoch."""
        for each in self.maintenance:
            if each.begin.timestamp() <= now < each.end.timestamp() and fnmatch.fnmatchcase(job, each.jobs):
                return each
        return None


def read(path: Path, known: Mapping[str, Any]) -> Policy:
    """The policy of a file.

    Args:
      known: the actions that there are, by name.

    Raises:
      SettingError: it cannot be read, or holds what nobody knows; with its place and value.
      MissingExtraError: pydantic is not installed.
    """
    try:
        import pydantic
    except ImportError as error:
        raise MissingExtraError("jaxobs agent --actions", "pydantic", "agent") from error
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
        found = tomllib.loads(text.decode())
    except OSError as error:
        raise SettingError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not valid TOML: {error}.") from error
    try:
        policy = pydantic.TypeAdapter(Policy).validate_python(found)
    except pydantic.ValidationError as error:
        raise SettingError("\n".join(f"{path}: {_told(each)}" for each in error.errors())) from error
    for name in (*(policy.actions or ()), *policy.cooldown_seconds):
        if name not in known:
            raise SettingError(f"{path}: there is no action `{name}`. {did_you_mean(name, known)}"
                               f"Actions: {', '.join(known)}.")  # fmt: skip
    for each in policy.maintenance:
        if each.begin.tzinfo is None or each.end.tzinfo is None or each.end <= each.begin:
            raise SettingError(f"{path}: `maintenance` needs a `begin` before its `end`, both with a time zone.")
    return policy


def _told(error: Any) -> str:
    place = ".".join(str(each) for each in error["loc"])
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        owner: type = {"warm_cache": WarmCache, "maintenance": Maintenance}.get(place.partition(".")[0], Policy)
        names = sorted(name for name in get_type_hints(owner) if not name.startswith("__"))
        return f"`{place}` is unknown. {did_you_mean(place.rpartition('.')[2], names)}Known here: {', '.join(names)}."
    return f"`{place}` is {error['input']!r:.80}: {error['msg'][0].lower()}{error['msg'][1:]}."
