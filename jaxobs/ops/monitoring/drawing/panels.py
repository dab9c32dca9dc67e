"""Panels as Grafana's model: queries, drawing, colours and links."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any, cast

from jaxobs.ops.monitoring.drawing import sdk
from jaxobs.ops.monitoring.drawing.content import LIVE, WITHOUT, Content, sentences
from jaxobs.ops.monitoring.drawing.sdk import common, dashboard
from jaxobs.ops.monitoring.panel_types import Column, Panel

DATASOURCE = "$datasource"
GOOD, BAD, NEUTRAL = "green", "red", "text"
RIGHT_FROM = 16
"""Width from which the legend is at the right, as a table."""

_UNITS = sdk.unit_ids()


def source() -> common.DataSourceRef:
    """The data source that the user chose."""
    return common.DataSourceRef(type_val="prometheus", uid=DATASOURCE)


def drawn(panel: Panel, content: Content) -> dashboard.Panel:
    """The panel, without its place; a new object on each call."""
    return dashboard.Panel(
        type_val=panel.kind,
        id_val=content.panel_id(panel.key),
        title=panel.title,
        description=panel.description,
        datasource=source(),
        interval=content.site.scrape_interval,
        links=[_runbook_link(alert.name, content) for alert in content.alerts(panel)],
        targets=[*_queries(panel, content)],
        transformations=_transformations(panel, content) if panel.kind == "table" else None,
        options=_options(panel, content),
        field_config=dashboard.FieldConfigSource(
            defaults=_defaults(panel, content), overrides=[*_column_overrides(panel, content), *_color_overrides(panel)]
        ),
    )


def _runbook_link(alert: str, content: Content) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(
        title=f"Runbook: {alert}", type_val=dashboard.DashboardLinkType.LINK, url=content.runbook(alert),
        target_blank=True, icon="doc", tooltip=f"What {alert} means and what to do", tags=[],
    )  # fmt: skip


def _queries(panel: Panel, content: Content) -> list[Any]:
    formats = {"table": "table", "heatmap": "time_series" if _calculated(panel) else "heatmap"}
    now = panel.kind in ("table", "bargauge")
    return [
        sdk.prometheus.Dataquery(
            ref_id=letter,
            expr=content.expr(target.expr),
            legend_format="__auto"
            if panel.kind == "heatmap" and content.site.native_histograms
            else content.legend(target.legend) or "__auto",
            instant=now or target.instant,
            range_val=not (now or target.instant),
            format_val=sdk.prometheus.PromQueryFormat(formats.get(panel.kind, "time_series")),
            editor_mode=sdk.prometheus.QueryEditorMode.CODE,
            exemplar=False,
            datasource=source(),
        )
        for letter, target in zip(ascii_uppercase, panel.targets, strict=False)
    ]


def _calculated(panel: Panel) -> bool:
    return not panel.targets[0].expr.startswith("buckets_of(")


def _transformations(panel: Panel, content: Content) -> list[dashboard.DataTransformerConfig]:
    """Joins the queries by their labels, keeps the columns that are asked for, in their order, with their titles."""
    columns = content.columns(panel)
    fields = {column.source: _field(column, panel) for column in columns}
    names = list(fields.values())
    # Grafana makes a column of the metric's name too, by which no two queries would agree.
    unnamed = dashboard.DataTransformerConfig(id_val="filterFieldsByName", options={"exclude": {"names": ["__name__"]}})
    return [
        *([unnamed] if len(panel.targets) > 1 else []),
        dashboard.DataTransformerConfig(id_val="merge", options={}),
        dashboard.DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": names}}),
        dashboard.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": {},
                "indexByName": {name: place for place, name in enumerate(names)},
                "renameByName": {fields[column.source]: column.title for column in columns},
            },
        ),
    ]


def _field(column: Column, panel: Panel) -> str:
    """The name of the field that Grafana makes: a label's, or that of a query's values."""
    if column.source not in ascii_uppercase:
        return column.source
    return f"Value #{column.source}" if len(panel.targets) > 1 else "Value"


def _column_overrides(panel: Panel, content: Content) -> list[dashboard.DashboardFieldConfigSourceOverrides]:
    return [
        dashboard.DashboardFieldConfigSourceOverrides(
            matcher=dashboard.MatcherConfig(id_val="byName", options=column.title),
            properties=[
                dashboard.DynamicConfigValue(id_val="unit", value=content.unit(column.unit, _UNITS)),
                *_column_look(column, content),
            ],
        )
        for column in content.columns(panel)
    ]


def _column_look(column: Column, content: Content) -> list[dashboard.DynamicConfigValue]:
    found: dict[str, Any] = {"decimals": 0} if column.unit == "short" else {}
    mappings = {kind: (text, NEUTRAL) for kind, text in sentences().items()} if column.explained else column.mappings
    if mappings:
        found["mappings"] = _mappings(mappings)
    limit = column.good_to if column.good_from is None else column.good_from
    if limit is not None:
        colors = (GOOD, BAD) if column.good_from is None else (BAD, GOOD)
        steps = [{"color": color, "value": value} for color, value in zip(colors, (None, limit), strict=True)]
        found["thresholds"] = {"mode": "absolute", "steps": steps}
    if mappings or limit is not None:
        found["custom.cellOptions"] = {"type": "color-text", "wrapText": column.explained}
    if links := content.cell_links(column):
        found["links"] = [_data_link(*each) for each in links]
    return [dashboard.DynamicConfigValue(id_val=name, value=value) for name, value in found.items()]


def _color_overrides(panel: Panel) -> list[dashboard.DashboardFieldConfigSourceOverrides]:
    return [
        dashboard.DashboardFieldConfigSourceOverrides(
            matcher=dashboard.MatcherConfig(id_val="byName", options=series),
            properties=[dashboard.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": color})],
        )
        for series, color in panel.colors.items()
    ]


def _data_link(title: str, url: str) -> dict[str, Any]:
    return {"title": title, "url": url, "targetBlank": False}


def _mappings(mappings: Mapping[str, tuple[str, str]]) -> list[Any]:
    options = {
        value: dashboard.ValueMappingResult(text=text, color=color, index=place)
        for place, (value, (text, color)) in enumerate(mappings.items())
    }
    return [dashboard.ValueMap(options=options)] if options else []


def _defaults(panel: Panel, content: Content) -> dashboard.FieldConfig:
    limits = content.limits(panel)
    boards = dict.fromkeys(filter(None, (content.drill_down(target) for target in panel.targets)))
    links = [_data_link(f"Open {each}", content.board_link(each, "${__field.labels.instance}")) for each in boards]
    links += [_data_link(LIVE[0], "http://${__field.labels.instance}/")] if boards else []
    return dashboard.FieldConfig(
        unit=content.unit(panel.unit, _UNITS),
        decimals=panel.decimals,
        min_val=panel.least,
        max_val=panel.most,
        mappings=_mappings(panel.mappings),
        no_value=panel.no_value or WITHOUT.get(panel.needs),
        links=cast("Any", links) or None,
        color=_color(panel, bool(limits)),
        thresholds=dashboard.ThresholdsConfig(mode=dashboard.ThresholdsMode.ABSOLUTE, steps=_steps(panel, limits)),
        custom=_custom(panel, bool(limits)),
    )  # fmt: skip


def _steps(panel: Panel, limits: list[tuple[float, str]]) -> list[dashboard.Threshold]:
    if not limits:
        return [dashboard.Threshold(value=None, color=NEUTRAL if panel.kind == "stat" else GOOD)]
    values, colors = [value for value, _ in limits], [*(color for _, color in limits), GOOD]
    if panel.good != "high":
        values, colors = values[::-1], colors[::-1]
    return [dashboard.Threshold(value=value, color=color) for value, color in zip([None, *values], colors, strict=True)]


def _color(panel: Panel, has_threshold: bool) -> dashboard.FieldColor:
    modes = dashboard.FieldColorModeId
    if panel.kind in ("stat", "table", "state-timeline") or (panel.kind == "bargauge" and has_threshold):
        return dashboard.FieldColor(mode=modes.THRESHOLDS)
    if panel.kind == "bargauge" and panel.good == "high":
        return dashboard.FieldColor(mode=modes.CONTINUOUS_RD_YL_GR)
    if panel.kind == "bargauge":
        return dashboard.FieldColor(mode=modes.CONTINUOUS_BLUES)
    return dashboard.FieldColor(mode=modes.PALETTE_CLASSIC_BY_NAME)


def _custom(panel: Panel, has_threshold: bool) -> Any:
    if panel.kind == "timeseries":
        drawn = common.GraphThresholdsStyleMode.DASHED if has_threshold else common.GraphThresholdsStyleMode.OFF
        stacking = common.StackingMode.NORMAL if panel.stacked else common.StackingMode.NONE
        return sdk.timeseries.FieldConfig(
            draw_style=common.GraphDrawStyle.LINE, line_width=1, fill_opacity=40 if panel.stacked else 8,
            show_points=common.VisibilityMode.NEVER, span_nulls=False, axis_soft_min=panel.least,
            thresholds_style=common.GraphThresholdsStyleConfig(mode=drawn),
            stacking=common.StackingConfig(mode=stacking, group="A"),
        )  # fmt: skip
    if panel.kind == "state-timeline":
        return sdk.statetimeline.FieldConfig(fill_opacity=80, line_width=0)
    if panel.kind == "table":
        return sdk.table.FieldConfig(align=common.FieldTextAlignment.AUTO, filterable=True)
    return None


def _legend(panel: Panel) -> common.VizLegendOptions:
    right = panel.width >= RIGHT_FROM
    return common.VizLegendOptions(
        show_legend=True,
        display_mode=common.LegendDisplayMode.TABLE if right else common.LegendDisplayMode.LIST,
        placement=common.LegendPlacement.RIGHT if right else common.LegendPlacement.BOTTOM,
        calcs=["lastNotNull", "max"] if right else [],
    )


def _timeseries(panel: Panel) -> Any:
    return sdk.timeseries.Options(
        legend=_legend(panel),
        tooltip=common.VizTooltipOptions(mode=common.TooltipDisplayMode.MULTI, sort=common.SortOrder.DESCENDING),
    )


def _options(panel: Panel, content: Content) -> Any:
    if panel.kind == "stat":
        return _stat(panel, bool(content.limits(panel)))
    return _OPTIONS[panel.kind](panel)


def _stat(panel: Panel, has_threshold: bool) -> Any:
    history = not panel.targets[0].instant
    return sdk.stat.Options(
        graph_mode=common.BigValueGraphMode.AREA if history else common.BigValueGraphMode.NONE,
        color_mode=common.BigValueColorMode.BACKGROUND if has_threshold else common.BigValueColorMode.VALUE,
        text_mode=common.BigValueTextMode.VALUE_AND_NAME,
        justify_mode=common.BigValueJustifyMode.AUTO,
        orientation=common.VizOrientation.AUTO,
        reduce_options=_last(),
    )


def _bargauge(panel: Panel) -> Any:
    return sdk.bargauge.Options(
        display_mode=common.BarGaugeDisplayMode.GRADIENT,
        orientation=common.VizOrientation.HORIZONTAL,
        value_mode=common.BarGaugeValueMode.COLOR,
        legend=_legend(panel),
        reduce_options=_last(),
    )


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions(calcs=["lastNotNull"], fields="", values=False)


def _table(panel: Panel) -> Any:
    return sdk.table.Options(show_header=True, cell_height=common.TableCellHeight.SM)


def _state_timeline(panel: Panel) -> Any:
    return sdk.statetimeline.Options(
        legend=_legend(panel),
        merge_values=True,
        show_value=common.VisibilityMode.NEVER,
        tooltip=common.VizTooltipOptions(mode=common.TooltipDisplayMode.SINGLE, sort=common.SortOrder.NONE),
    )


def _heatmap(panel: Panel) -> Any:
    return sdk.heatmap.Options(
        calculate=_calculated(panel),
        color=sdk.heatmap.HeatmapColorOptions(
            mode=sdk.heatmap.HeatmapColorMode.SCHEME, scheme="Oranges", fill="dark-orange", exponent=0.5, steps=64,
            scale=sdk.heatmap.HeatmapColorScale.EXPONENTIAL,
        ),
        y_axis=sdk.heatmap.YAxisConfig(unit=panel.unit, min_val=panel.least, max_val=panel.most),
        cell_values=sdk.heatmap.CellValues(unit="short"),
        legend=sdk.heatmap.HeatmapLegend(show=True),
        tooltip=sdk.heatmap.HeatmapTooltip(mode=common.TooltipDisplayMode.SINGLE, show_color_scale=True),
    )  # fmt: skip


_OPTIONS = {
    "timeseries": _timeseries,
    "bargauge": _bargauge,
    "table": _table,
    "state-timeline": _state_timeline,
    "heatmap": _heatmap,
}
