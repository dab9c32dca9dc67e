"""The metrics: a module for each subject, found by this folder, with `METRICS`."""

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.metrics.metric import Metric


class Subject(discovery.Module, Protocol):
    """Declares the metrics of one subject."""

    @property
    def METRICS(self) -> tuple[Metric, ...]: ...  # noqa: N802 - a constant of the module
