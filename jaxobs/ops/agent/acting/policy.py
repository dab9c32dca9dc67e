"""Policy that says what the agent may do: a TOML file, checked as it is read (docs/agent.md shows one)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from jaxobs.base.errors import MissingExtraError, SettingError
from jaxobs.ops import given_files

try:
    from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator
except ImportError as error:
    raise MissingExtraError("jaxobs agent --actions", "pydantic", "agent") from error

Class = Literal["A1", "A2"]
Name = Literal["capture_profile", "collect_bundle", "dump_memory", "warm_cache"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Maintenance(_Strict):
    """A time in which the agent does nothing."""

    begin: AwareDatetime
    end: AwareDatetime
    jobs: str = "*"
    """Pattern of the jobs, as of a shell."""

    @model_validator(mode="after")
    def _ends_later(self) -> Maintenance:
        if self.end <= self.begin:
            raise SettingError("`maintenance` needs a `begin` before its `end`.")
        return self


class WarmCache(_Strict):
    """Files that `warm_cache` compiles; none of them comes from an alert or a process."""

    event_log: str
    """Event log of a run, as `jaxobs cache warm` takes it."""
    cache_dir: str
    script: str | None = None
    module: str | None = None


class Policy(_Strict):
    """The choices, as docs/agent.md lists them; without a file the agent does nothing."""

    allow: tuple[Class, ...] = ()
    actions: tuple[Name, ...] | None = None
    dry_run: bool = True
    jobs: tuple[re.Pattern[str], ...] = (re.compile(".+"),)
    opt_out: tuple[str, ...] = ()
    token_variable: str = "JAXOBS_ACTION_TOKEN"
    steps: int = Field(5, ge=1, le=1000)
    cooldown_seconds: dict[Name, Annotated[float, Field(ge=1, le=30 * 86_400)]] = {}
    per_job_an_hour: int = Field(4, ge=1, le=1000)
    share_of_processes: float = Field(0.1, ge=0, le=1)
    approval_minutes: float = Field(30.0, ge=1, le=1440)
    failures: int = Field(3, ge=1, le=100)
    slower: float = Field(1.5, ge=1.05, le=100)
    maintenance: tuple[Maintenance, ...] = ()
    warm_cache: WarmCache | None = None


def read(path: Path) -> Policy:
    """Returns the policy of a file. Raises SettingError for what nobody knows, with its place and value."""
    found = given_files.toml(path)
    try:
        return Policy.model_validate(found)
    except ValidationError as error:
        tables: dict[str, type[BaseModel]] = {"": Policy, "warm_cache": WarmCache, "maintenance": Maintenance}
        known = {name: each.model_fields for name, each in tables.items()}
        raise given_files.mistakes(error, path, known) from error
