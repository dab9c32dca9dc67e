"""The dashboards for Grafana."""

from jaxobs.ops.monitoring import boards
from jaxobs.ops.monitoring.site import Site


def files(site: Site) -> dict[str, str]:
    """Returns the contents by path.

    Raises:
      MissingExtraError: Grafana's models are not installed.
    """
    from jaxobs.ops.monitoring import drawing

    return {f"dashboards/jaxobs-{board.name}.json": drawing.draw(board, site) for board in boards.boards()}
