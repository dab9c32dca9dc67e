"""`/metrics`: what Prometheus scrapes, as text or OpenMetrics by content negotiation."""

from __future__ import annotations

from collections.abc import Mapping

from jaxobs.exposition import Renderer, negotiate
from jaxobs.http_types import Request, Response, Route
from jaxobs.store import Store


def routes(store: Store) -> Mapping[str, Route]:
    """The paths that this exporter answers."""
    renderer = Renderer(store)

    def metrics(request: Request) -> Response:
        content_type = negotiate(request.accept)
        return Response(renderer.render(content_type), content_type)

    return {"/metrics": metrics}
