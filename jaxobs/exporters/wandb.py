"""Weights & Biases: figures in the program's own run, or in one of jaxobs' own."""

import os
import sys
from typing import Any

from jaxobs.base.config import Settings
from jaxobs.exporters.forms import tracked
from jaxobs.state.store import Store


class WeightsAndBiases(tracked.Tracker):
    """Writes to a run. Its own has nothing in it but what is written here: no console, code, git or machine."""

    def __init__(self, store: Store, project: str) -> None:
        super().__init__(store)
        self._project = project
        self._own: Any = None

    def run(self) -> Any:
        """The program's run while it has one; or the own one."""
        if self._project == tracked.ACTIVE:
            module = sys.modules.get("wandb")  # who has a run has imported it
            return getattr(module, "run", None)
        if self._own is None:
            import wandb

            self._own = wandb.init(
                project=self._project, job_type="jaxobs", mode=_mode(wandb), reinit="create_new",
                settings=wandb.Settings(
                    console="off", disable_git=True, save_code=False, x_disable_meta=True, x_disable_stats=True,
                    silent=True,
                ),
            )  # fmt: skip
        return self._own

    def describe(self, run: Any, parameters: dict[str, str]) -> None:
        """In the run's configuration."""
        run.config.update(parameters, allow_val_change=True)

    def write(self, run: Any, step: int, figures: dict[str, float]) -> None:
        """Into the step that the program is at, which continues counting by itself."""
        run.log({**figures, "jaxobs/steps": step}, commit=run is self._own)

    def is_own(self) -> bool:
        """Returns whether the setting names a project."""
        return self._project != tracked.ACTIVE

    def end(self, exit_code: int | None) -> None:
        """Ends the own run; the program's is the program's."""
        if self._own is not None:
            self._own.finish(exit_code=exit_code or 0)


def _mode(wandb: Any) -> str | None:
    """Offline if no key is known: the client would ask for one on the terminal."""
    if os.environ.get("WANDB_MODE") or os.environ.get("WANDB_API_KEY") or wandb.api.api_key:
        return None
    return "offline"


def exporter(store: Store, settings: Settings) -> WeightsAndBiases | None:
    """Returns the exporter to Weights & Biases, None if not wanted; raises `MissingExtraError` without wandb."""
    if not settings.wandb:
        return None
    tracked.installed("wandb", "wandb", "wandb", "wandb")
    return WeightsAndBiases(store, settings.wandb)
