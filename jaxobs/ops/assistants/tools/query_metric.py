"""A query to the Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from jaxobs.ops.assistants import prometheus
from jaxobs.ops.assistants.answers import Answer, Field, Sources, Start, no_data, page

POINTS = 30
TIMEOUT = 5.0


def make(sources: Sources) -> Callable[..., Answer]:
    def query_metric(
        query: Annotated[str, Field(min_length=1, max_length=2000, description="PromQL")],
        minutes: Annotated[int, Field(ge=1, le=1440)] = 60,
        points: Annotated[int, Field(ge=2, le=POINTS)] = 12,
        start: Start = 0,
    ) -> Answer:
        """Runs PromQL over the last `minutes` on the Prometheus that the server was started with.

        Each series has its labels and `points` values, as [seconds since the epoch, value]. At most 200 series and 5
        seconds: aggregate in the query.
        """
        found = prometheus.query_range(
            sources, query, end=time.time(), seconds=minutes * 60.0, points=points, timeout=TIMEOUT
        )
        if not found.series:
            return no_data("The query is valid and no series fits it. That says nothing about health.")
        more = f" More than {prometheus.MOST_SERIES} were found: aggregate in the query." if found.is_cut else ""
        return page(f"{len(found.series)} series.{more}", found.series, start)

    return query_metric
