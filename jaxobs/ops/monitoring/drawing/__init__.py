"""Dashboards as Grafana takes them, from the boards and a site's choices: the same bytes on every run."""

from jaxobs.ops.monitoring.drawing import classic, manifest
from jaxobs.ops.monitoring.drawing.content import Content
from jaxobs.ops.monitoring.drawing.sdk import JSONEncoder
from jaxobs.ops.monitoring.panel_types import Board
from jaxobs.ops.monitoring.site import Site


def draw(board: Board, site: Site) -> str:
    """The dashboard's JSON, in the format that the site wants."""
    newest = site.dashboards == "v2"
    content = Content(board, site, prices_in=newest)
    model = manifest.model(content) if newest else classic.model(content)
    return JSONEncoder(sort_keys=True, indent=2).encode(model) + "\n"
