"""`/metrics`: what Prometheus scrapes, as text or OpenMetrics by content negotiation."""

from collections.abc import Mapping

from jaxobs.exporters.forms.exposition import OPENMETRICS, TEXT, Renderer
from jaxobs.exporters.forms.http_types import Request, Response, Route, accepted
from jaxobs.state.store import Store


def routes(store: Store) -> Mapping[str, Route]:
    """The paths that this exporter answers."""
    renderer = Renderer(store)

    def metrics(request: Request) -> Response:
        content_type = negotiate(request.accept)
        return Response(renderer.render(content_type), content_type)

    return {"/metrics": metrics}


def negotiate(accept: str | None) -> str:
    """The exposition format for an `Accept` header: OpenMetrics where it is asked for and not liked less than text."""
    listed = accepted(accept)
    openmetrics = [
        each.quality
        for each in listed
        if each.name == "application/openmetrics-text" and each.parameters.get("version", "1.0.0") in ("0.0.1", "1.0.0")
    ]
    text = [each.quality for each in listed if each.name in ("text/plain", "text/*")]
    wanted = max(openmetrics, default=0.0)
    return OPENMETRICS if wanted > 0 and wanted >= max(text, default=0.0) else TEXT
