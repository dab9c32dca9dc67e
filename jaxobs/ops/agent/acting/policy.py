"""Policy that says what the agent may do: a TOML file, checked as it is read (docs/safe-actions.md shows one)."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from jaxobs.base.errors import MissingExtraError, SettingError
from jaxobs.base.suggestions import did_you_mean

try:
    from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator
except ImportError as error:
    raise MissingExtraError("jaxobs agent --actions", "pydantic", "agent") from error

Class = Literal["A1", "A2"]
Name = Literal["capture_profile", "collect_bundle", "dump_memory", "warm_cache"]

_MOST_BYTES = 2**20


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
    """The choices, as docs/safe-actions.md lists them; without a file the agent does nothing."""

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

    def refusal(self, job: str, target: str, now: float) -> str | None:
        """Returns why a job or a target is left alone at a time (seconds since the epoch); None if it is not."""
        if not any(each.fullmatch(job) for each in self.jobs):
            return "The policy does not name this job (`jobs`)."
        if any(fnmatch.fnmatchcase(name, each) for each in self.opt_out for name in (job, target)):
            return "The job or the process is opted out (`opt_out`)."
        for window in self.maintenance:
            if window.begin.timestamp() <= now < window.end.timestamp() and fnmatch.fnmatchcase(job, window.jobs):
                return f"There is maintenance until {window.end:%Y-%m-%d %H:%M %Z}."
        return None


def read(path: Path) -> Policy:
    """Returns the policy of a file.

    Raises:
      SettingError: it cannot be read, or holds what nobody knows; with its place and value.
    """
    try:
        with path.open("rb") as file:
            found = tomllib.loads(file.read(_MOST_BYTES).decode())
        return Policy.model_validate(found)
    except OSError as error:
        raise SettingError(f"Cannot read {path}: {error.strerror}.") from error
    except ValidationError as error:
        raise SettingError("\n".join(f"{path}: {_told(each)}" for each in error.errors())) from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not valid TOML: {error}.") from error


def _told(error: Any) -> str:
    place = ".".join(str(each) for each in error["loc"] if each != "[key]")
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "extra_forbidden":
        owners: dict[str, type[BaseModel]] = {"warm_cache": WarmCache, "maintenance": Maintenance}
        names = sorted(owners.get(place.partition(".")[0], Policy).model_fields)
        return f"`{place}` is unknown. {did_you_mean(place.rpartition('.')[2], names)}Known here: {', '.join(names)}."
    return f"`{place}` is {error['input']!r:.80}: {error['msg'][0].lower()}{error['msg'][1:]}."
