"""Grafana's classic JSON of a dashboard (v1), which Grafana 10 to 13 read."""

from collections.abc import Iterator

from jaxobs.ops.monitoring.drawing import layout
from jaxobs.ops.monitoring.drawing.content import TAG, Content
from jaxobs.ops.monitoring.drawing.panels import drawn, source
from jaxobs.ops.monitoring.drawing.sdk import dashboard
from jaxobs.ops.monitoring.panel_types import Annotation, Row, Variable

REFRESH = "1m"
REFRESHES = ["30s", "1m", "5m", "15m", "30m", "1h"]
TIMEZONE = "utc"
SINCE = "now-6h"


def model(content: Content) -> dashboard.Dashboard:
    """The dashboard."""
    board = content.board
    return dashboard.Dashboard(
        uid=content.uid(),
        title=board.title,
        description=board.description,
        tags=[TAG, board.name],
        timezone=TIMEZONE,
        editable=False,
        graph_tooltip=dashboard.DashboardCursorSync.CROSSHAIR,
        time=dashboard.DashboardDashboardTime(from_val=SINCE, to="now"),
        timepicker=dashboard.TimePickerConfig(hidden=False, refresh_intervals=REFRESHES),
        refresh=REFRESH,
        schema_version=42,
        version=1,
        panels=list(_panels(board.rows, content)),
        templating=dashboard.DashboardDashboardTemplating(list_val=list(_variables(content))),
        annotations=dashboard.AnnotationContainer(list_val=[_annotation(each, content) for each in board.annotations]),
        links=[dashboard.DashboardLink(**each) for each in content.links()],
    )


def _panels(rows: tuple[Row, ...], content: Content) -> Iterator[dashboard.Panel | dashboard.RowPanel]:
    top = 0
    for row in rows:
        panels = []
        for panel, (x, y) in layout.places(row.panels):
            found = drawn(panel, content)
            found.grid_pos = dashboard.GridPos(h=panel.height, w=panel.width, x=x, y=top + layout.ROW_HEIGHT + y)
            panels.append(found)
        yield dashboard.RowPanel(
            id_val=content.panel_id(f"row {row.title}"),
            title=content.row_title(row),
            repeat=row.repeat or None,
            collapsed=row.collapsed,
            grid_pos=dashboard.GridPos(h=layout.ROW_HEIGHT, w=layout.COLUMNS, x=0, y=top),
            panels=panels if row.collapsed else [],
        )
        if not row.collapsed:
            yield from panels
        top += layout.ROW_HEIGHT + (0 if row.collapsed else layout.height(row.panels))


def _variables(content: Content) -> Iterator[dashboard.VariableModel]:
    yield dashboard.VariableModel(
        type_val=dashboard.VariableType.DATASOURCE, name="datasource", label="Data source", query="prometheus",
        refresh=dashboard.VariableRefresh.ON_DASHBOARD_LOAD, hide=dashboard.VariableHide.DONT_HIDE,
        auto=None, auto_min=None, auto_count=None,
    )  # fmt: skip
    for name, label, query in content.targets():
        yield _query_variable(name, label, query, content)
    for variable in content.board.variables:
        if variable.query:
            yield _query_variable(variable.name, variable.label, content.variable_query(variable.query), content)
        else:
            yield _number(variable, content)


def _query_variable(name: str, label: str, query: str, content: Content) -> dashboard.VariableModel:
    return dashboard.VariableModel(
        type_val=dashboard.VariableType.QUERY, name=name, label=label, query=query, definition=query,
        datasource=source(), multi=True, include_all=True, all_value=content.all_value(name),
        current=dashboard.VariableOption(selected=True, text="All", value="$__all"),
        refresh=dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED, hide=dashboard.VariableHide.DONT_HIDE,
        sort=dashboard.VariableSort.ALPHABETICAL_ASC, regex="", auto=None, auto_min=None, auto_count=None,
    )  # fmt: skip


def _number(variable: Variable, content: Content) -> dashboard.VariableModel:
    value = content.default(variable.default)
    option = dashboard.VariableOption(selected=True, text=value, value=value)
    return dashboard.VariableModel(
        type_val=dashboard.VariableType.TEXTBOX, name=variable.name, label=variable.label, query=value, current=option,
        options=[option], hide=dashboard.VariableHide.DONT_HIDE, auto=None, auto_min=None, auto_count=None,
    )  # fmt: skip


def _annotation(annotation: Annotation, content: Content) -> dashboard.AnnotationQuery:
    return dashboard.AnnotationQuery(
        name=annotation.name, datasource=source(), enable=True, hide=False, icon_color=annotation.color,
        expr=content.expr(annotation.expr), title_format=annotation.title, text_format="", tag_keys="",
        step=content.site.scrape_interval, use_value_for_time=annotation.value_is_time,
    )  # fmt: skip
