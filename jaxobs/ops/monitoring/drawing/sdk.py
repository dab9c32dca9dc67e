"""Grafana's own models of dashboards: `grafana-foundation-sdk`, with what is wrong in its release 0.0.21 kept out.

Only models are taken: the builders hand out an object that they change later, place panels one over another and give
them no number. Importing the models, too, warns that a class in them is deprecated; that is nothing a user can act on.
"""

import warnings

from jaxobs.base.errors import MissingExtraError

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.models import (
            bargauge,
            common,
            dashboard,
            dashboardv2,
            heatmap,
            prometheus,
            resource,
            stat,
            statetimeline,
            table,
            timeseries,
            units,
        )
except ImportError as error:
    raise MissingExtraError("jaxobs generate dashboards", "grafana-foundation-sdk", "grafana") from error

__all__ = [
    "JSONEncoder",
    "bargauge",
    "common",
    "dashboard",
    "dashboardv2",
    "heatmap",
    "prometheus",
    "resource",
    "stat",
    "statetimeline",
    "table",
    "timeseries",
    "units",
]


def unit_ids() -> frozenset[str]:
    """Every unit that Grafana knows."""
    return frozenset(value for name, value in vars(units).items() if name[0].isupper() and isinstance(value, str))
