"""Grafana's resource of a dashboard (v2), the default of Grafana 13.

Panels are drawn as in the classic format and put into its frame. A price is written into the queries: the field's
linter takes a variable in this format for its own name, which would be the name of a series.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

from jaxobs.ops.monitoring.drawing import classic, layout
from jaxobs.ops.monitoring.drawing.content import TAG, Content
from jaxobs.ops.monitoring.drawing.panels import DATASOURCE, drawn
from jaxobs.ops.monitoring.drawing.sdk import JSONEncoder, dashboardv2, resource
from jaxobs.ops.monitoring.panel_types import Annotation, Panel, Row

API_VERSION = "dashboard.grafana.app/v2"
PANEL_VERSION = "13.0.0"
"""Version of the panels' plugins: those of the first Grafana that takes this format as its own."""


def model(content: Content) -> resource.Manifest:
    """The dashboard with its name."""
    board = content.board
    spec = dashboardv2.Dashboard(
        title=board.title,
        description=board.description,
        tags=[TAG, board.name],
        editable=False,
        cursor_sync=dashboardv2.DashboardCursorSync.CROSSHAIR,
        preload=False,
        time_settings=dashboardv2.TimeSettingsSpec(
            timezone=classic.TIMEZONE, from_val=classic.SINCE, to="now", auto_refresh=classic.REFRESH,
            auto_refresh_intervals=classic.REFRESHES,
        ),
        variables=list(_variables(content)),
        annotations=[_annotation(each, content) for each in board.annotations],
        links=[dashboardv2.DashboardLink(**each) for each in content.links()],
        elements={_name(panel, content): _panel(panel, content) for row in board.rows for panel in row.panels},
        layout=dashboardv2.RowsLayoutKind(
            spec=dashboardv2.RowsLayoutSpec(rows=[_row(row, content) for row in board.rows])
        ),
    )  # fmt: skip
    return resource.Manifest(
        api_version=API_VERSION, kind="Dashboard", metadata=resource.Metadata(name=content.uid()), spec=spec
    )


def _name(panel: Panel, content: Content) -> str:
    return f"panel-{content.panel_id(panel.key)}"


def _row(row: Row, content: Content) -> dashboardv2.RowsLayoutRowKind:
    items = [
        dashboardv2.GridLayoutItemKind(
            spec=dashboardv2.GridLayoutItemSpec(
                x=x, y=y, width=panel.width, height=panel.height,
                element=dashboardv2.ElementReference(name=_name(panel, content)),
            )
        )
        for panel, (x, y) in layout.places(row.panels)
    ]  # fmt: skip
    grid = dashboardv2.GridLayoutKind(spec=dashboardv2.GridLayoutSpec(items=items))
    repeat = dashboardv2.RowRepeatOptions(value=row.repeat) if row.repeat else None
    spec = dashboardv2.RowsLayoutRowSpec(
        title=content.row_title(row), collapse=row.collapsed, layout=grid, repeat=repeat
    )
    return dashboardv2.RowsLayoutRowKind(spec=spec)


def _panel(panel: Panel, content: Content) -> dashboardv2.PanelKind:
    found: dict[str, Any] = json.loads(JSONEncoder().encode(drawn(panel, content)))
    return dashboardv2.PanelKind(
        spec=dashboardv2.PanelSpec(
            id_val=found["id"],
            title=found["title"],
            description=found["description"],
            links=[
                dashboardv2.DataLink(title=each["title"], url=each["url"], target_blank=each["targetBlank"])
                for each in found["links"]
            ],
            data=_queries(found, content),
            viz_config=dashboardv2.VizConfigKind(
                group=found["type"],
                version=PANEL_VERSION,
                spec=dashboardv2.VizConfigSpec(
                    options=found["options"], field_config=cast("dashboardv2.FieldConfigSource", found["fieldConfig"])
                ),
            ),
        )
    )


def _queries(found: dict[str, Any], content: Content) -> dashboardv2.QueryGroupKind:
    queries = [
        dashboardv2.PanelQueryKind(
            spec=dashboardv2.PanelQuerySpec(
                ref_id=each["refId"],
                query=_query({key: value for key, value in each.items() if key not in ("datasource", "refId")}),
            )
        )
        for each in found["targets"]
    ]
    transformations = [
        dashboardv2.TransformationKind(
            group=each["id"], spec=dashboardv2.TransformationSpec(disabled=False, options=each["options"])
        )
        for each in found.get("transformations") or []
    ]
    return dashboardv2.QueryGroupKind(
        spec=dashboardv2.QueryGroupSpec(
            queries=queries,
            transformations=transformations,
            query_options=dashboardv2.QueryOptionsSpec(interval=content.site.scrape_interval),
        )
    )


def _query(spec: dict[str, Any]) -> dashboardv2.DataQueryKind:
    return dashboardv2.DataQueryKind(
        group="prometheus",
        version="v0",
        datasource=dashboardv2.Dashboardv2DataQueryKindDatasource(name=DATASOURCE),
        spec=spec,
    )


def _variables(content: Content) -> Iterator[dashboardv2.VariableKind]:
    yield dashboardv2.DatasourceVariableKind(
        spec=dashboardv2.DatasourceVariableSpec(
            name="datasource", label="Data source", plugin_id="prometheus",
            refresh=dashboardv2.VariableRefresh.ON_DASHBOARD_LOAD, hide=dashboardv2.VariableHide.DONT_HIDE,
        )
    )  # fmt: skip
    more = [
        (each.name, each.label, content.variable_query(each.query)) for each in content.board.variables if each.query
    ]
    for name, label, query in [*content.targets(), *more]:
        yield dashboardv2.QueryVariableKind(
            spec=dashboardv2.QueryVariableSpec(
                name=name, label=label, definition=query,
                query=_query({"query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"}),
                current=dashboardv2.VariableOption(selected=True, text="All", value="$__all"),
                multi=True, include_all=True, all_value=content.all_value(name), options=[],
                refresh=dashboardv2.VariableRefresh.ON_TIME_RANGE_CHANGED,
                hide=dashboardv2.VariableHide.DONT_HIDE, sort=dashboardv2.VariableSort.ALPHABETICAL_ASC,
            )
        )  # fmt: skip


def _annotation(annotation: Annotation, content: Content) -> dashboardv2.AnnotationQueryKind:
    return dashboardv2.AnnotationQueryKind(
        spec=dashboardv2.AnnotationQuerySpec(
            name=annotation.name, enable=True, hide=False, icon_color=annotation.color, built_in=False,
            query=_query({"expr": content.expr(annotation.expr), "refId": "Anno"}),
            legacy_options={
                "titleFormat": annotation.title, "textFormat": "", "tagKeys": "",
                "step": content.site.scrape_interval, "useValueForTime": annotation.value_is_time,
            },
        )
    )  # fmt: skip
