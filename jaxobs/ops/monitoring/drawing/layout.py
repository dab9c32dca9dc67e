"""Places of panels in 24 columns: each panel as high up as it fits, none over another."""

from collections.abc import Iterator

from jaxobs.ops.monitoring.panel_types import Panel

COLUMNS = 24
ROW_HEIGHT = 1
"""Height of a row's heading."""

Place = tuple[int, int]
"""Distances from the left and from the top."""


def places(panels: tuple[Panel, ...]) -> Iterator[tuple[Panel, Place]]:
    """Each panel's place below the heading of its row."""
    filled = [0] * COLUMNS
    for panel in panels:
        if not 0 < panel.width <= COLUMNS:
            raise ValueError(f"Panel `{panel.key}` is {panel.width} wide: 1 to {COLUMNS}.")
        starts = range(COLUMNS - panel.width + 1)
        y, x = min((max(filled[start : start + panel.width]), start) for start in starts)
        filled[x : x + panel.width] = [y + panel.height] * panel.width
        yield panel, (x, y)


def height(panels: tuple[Panel, ...]) -> int:
    """Returns the height of a row without its heading."""
    return max((y + panel.height for panel, (_, y) in places(panels)), default=0)
