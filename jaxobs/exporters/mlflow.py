"""MLflow: figures as system metrics of the program's own run, or of one of jaxobs' own."""

import re
import sys
import threading
import time
from typing import Any

from jaxobs.base.config import Settings
from jaxobs.base.guard import guarded
from jaxobs.exporters.forms import tracked
from jaxobs.facts.events import Event
from jaxobs.state.store import Store

_FOREIGN = re.compile(r"[^\w\-./ ]")
"""Characters that MLflow refuses in names."""


class MLflow(tracked.Tracker):
    """Writes to a run by its id, wherever the program's tracking address leads."""

    def __init__(self, store: Store, experiment: str) -> None:
        super().__init__(store)
        self._experiment = experiment
        self._own: str | None = None
        self._active: str | None = None
        self._known: set[tuple[str, str]] = set()
        self._unsubscribe = store.subscribe(self._look) if experiment == tracked.ACTIVE else lambda: None

    def _look(self, event: Event) -> None:
        """On the program's threads, as they compile: MLflow knows runs by thread."""
        module = sys.modules.get("mlflow")  # who has a run has imported it
        if module is not None and not threading.current_thread().name.startswith("jaxobs"):
            with guarded("mlflow.active_run"):
                active = module.active_run()
                if active is not None:
                    self._active = active.info.run_id

    def run(self) -> str | None:
        """The id of the program's latest run while that lasts; or the own one's."""
        if self._experiment == tracked.ACTIVE:
            if self._active is not None and _client().get_run(self._active).info.status != "RUNNING":
                self._active = None
            return self._active
        if self._own is None:
            client = _client()
            found = client.get_experiment_by_name(self._experiment)
            number = client.create_experiment(self._experiment) if found is None else found.experiment_id
            self._own = client.create_run(number, run_name="jaxobs").info.run_id
        return self._own

    def describe(self, run: str, parameters: dict[str, str]) -> None:
        """Writes them as parameters, each once: MLflow allows no other value later."""
        from mlflow.entities import Param

        new = {name: value for name, value in parameters.items() if (run, name) not in self._known}
        self._known |= {(run, name) for name in new}
        _client().log_batch(run, params=[Param(_name(name), value) for name, value in new.items()])

    def write(self, run: str, step: int, figures: dict[str, float]) -> None:
        """Writes them as system metrics, which have a tab of their own."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(f"system/{_name(name)}", value, now, step) for name, value in figures.items()]
        _client().log_batch(run, metrics=metrics)

    def is_own(self) -> bool:
        """Returns whether the setting names an experiment."""
        return self._experiment != tracked.ACTIVE

    def end(self, exit_code: int | None) -> None:
        """Ends the own run; the program's is the program's."""
        self._unsubscribe()
        if self._own is not None:
            _client().set_terminated(self._own, "FAILED" if exit_code else "FINISHED")


def _client() -> Any:
    from mlflow import MlflowClient

    return MlflowClient()


def _name(name: str) -> str:
    return _FOREIGN.sub("_", name)


def exporter(store: Store, settings: Settings) -> MLflow | None:
    """Returns the exporter to MLflow, None if it is not wanted; raises `MissingExtraError` without mlflow."""
    if not settings.mlflow:
        return None
    tracked.installed("mlflow", "mlflow", "mlflow", "mlflow")
    return MLflow(store, settings.mlflow)
