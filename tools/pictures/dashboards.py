"""Pictures of the dashboards: each drawn from its JSON and a Prometheus' answers, roughly as Grafana would."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from jaxobs.ops.monitoring import alerting, boards
from jaxobs.ops.monitoring.panel_types import Board
from tools import panel_data
from tools.panel_data import Answer, Span
from tools.pictures.pages import shrink

FACTOR = 60
"""How much faster the rules' clock is: six hours of goodput are as many minutes."""
WIDTH, UNIT, DPI = 1680, 34, 100
"""Pixels: of a picture, and of one unit of height."""
TOP = 76
BACK, CARD, EDGE, TEXT, DIM = "#111217", "#181b1f", "#2a2e35", "#d5d7dc", "#8b8f98"
PALETTE = (
    "#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a",
    "#447ebc", "#c15c17", "#890f02", "#0a437c", "#6d1f62", "#584477", "#b7dbab", "#f4d598", "#70dbed", "#f9ba8f",
)  # fmt: skip
COLORS = {
    "green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "yellow": "#fade2a", "blue": "#5794f2",
    "purple": "#b877d9",
    "gray": "#7b7f88", "text": "#d5d7dc", "light-orange": "#ffb357", "light-blue": "#8ab8ff", "light-yellow": "#ffee52",
    "super-light-purple": "#deb6f2", "dark-orange": "#fa6400",
}  # fmt: skip
Drawer = Callable[[Axes, Mapping[str, Any], Sequence[Answer]], None]


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """A number with its unit, as Grafana writes it."""
    if value != value:
        return "NaN"
    if unit == "percentunit":
        return _plain(value * 100, decimals if decimals is not None else (0 if abs(value) >= 1 else 1)) + "%"
    if unit == "s":
        return _seconds(value)
    if unit in ("bytes", "Bps"):
        return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB")) + ("/s" if unit == "Bps" else "")
    if unit.startswith("currency"):
        places = decimals if decimals is not None and abs(value) < 100 else 2
        return ("$" if unit.endswith("USD") else "") + _plain(value, places)
    if unit == "hertz":
        return _scaled(value, 1000, ("Hz", "kHz", "MHz", "GHz"))
    if unit in ("watt", "joule"):
        return _scaled(value, 1000, ("W", "kW", "MW") if unit == "watt" else ("J", "kJ", "MJ"))
    suffix = {"ops": " ops/s", "cps": " c/s", "reqps": " req/s", "celsius": " °C"}.get(unit, "")
    if unit == "none":
        return _plain(value, decimals if decimals is not None else 2)
    return _scaled(value, 1000, ("", " K", " Mil", " Bil", " Tri"), decimals) + suffix


def _plain(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, base: int, names: Sequence[str], decimals: int | None = None) -> str:
    place = 0
    while abs(value) >= base and place < len(names) - 1:
        value, place = value / base, place + 1
    places = (
        decimals if decimals is not None and place == 0 else (0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2)
    )
    space = " " if names[place] and not names[place].startswith(" ") else ""
    return f"{_plain(value, places)}{space}{names[place]}"


def _seconds(value: float) -> str:
    for least, factor, name in (
        (3600, 3600, "h"),
        (60, 60, "min"),
        (1, 1, "s"),
        (1e-3, 1e-3, "ms"),
        (1e-6, 1e-6, "µs"),
    ):
        if abs(value) >= least:
            return f"{_plain(value / factor, 0 if value / factor >= 100 else 1 if value / factor >= 10 else 2)} {name}"
    return "0 s"


def legend(target: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """The name of a series."""
    text = target["legendFormat"]
    if text == "__auto":
        return ", ".join(f"{name}={value}" for name, value in labels.items() if name != "__name__") or target["expr"]
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), text)


def lines(
    panel: Mapping[str, Any], answers: Sequence[Answer]
) -> list[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Name, times and values of each series that a panel shows."""
    targets = {each["refId"]: each for each in panel["targets"]}
    found = []
    for answer in answers:
        for series in answer.series:
            points = series["values"] if "values" in series else [series["value"]]
            times, values = np.array([float(at) for at, _ in points]), np.array([float(value) for _, value in points])
            found.append((legend(targets[answer.letter], series["metric"]), times, values))
    return found


def _fixed(panel: Mapping[str, Any]) -> dict[str, str]:
    return {
        each["matcher"]["options"]: COLORS.get(prop["value"]["fixedColor"], TEXT)
        for each in panel["fieldConfig"]["overrides"] for prop in each["properties"] if prop["id"] == "color"
    }  # fmt: skip


def _threshold_color(panel: Mapping[str, Any], value: float) -> str:
    color = "text"
    for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]:
        if step["value"] is None or value >= step["value"]:
            color = step["color"]
    return COLORS[color]


def time_series(axes: Axes, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """Lines, or areas one on top of the other, with thresholds and a legend."""
    defaults = panel["fieldConfig"]["defaults"]
    custom, unit, decimals = defaults["custom"], defaults["unit"], defaults.get("decimals")
    found, fixed = lines(panel, answers), _fixed(panel)
    colors = [fixed.get(name, PALETTE[place % len(PALETTE)]) for place, (name, _, _) in enumerate(found)]
    if custom["stacking"]["mode"] == "normal":
        at = sorted({when for _, times, _ in found for when in times})
        below = np.zeros(len(at))
        for color, (_, times, values) in zip(colors, found, strict=True):
            level = dict(zip(times, values, strict=True))
            above = below + np.array([level.get(when, 0.0) for when in at])
            axes.fill_between(at, below, above, color=color, alpha=0.45, linewidth=0)
            axes.plot(at, above, color=color, linewidth=1)
            below = above
    else:
        for color, (_, times, values) in zip(colors, found, strict=True):
            axes.plot(times, values, color=color, linewidth=1.2, marker="." if len(times) < 2 else None)
    low, high = axes.get_ylim()
    low = min(low, defaults["min"]) if "min" in defaults else low
    if unit == "percentunit" and defaults.get("max") == 1 and high > 0.5:
        low, high = 0.0, 1.02
    axes.set_ylim(0 if low >= 0 or "min" in defaults else low, high if high > 0 else 1)
    if custom["thresholdsStyle"]["mode"] == "dashed":
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is not None and step["value"] <= axes.get_ylim()[1] * 20:
                axes.axhline(
                    step["value"],
                    color=COLORS[
                        defaults["thresholds"]["steps"][0]["color"] if step["color"] == "green" else step["color"]
                    ],
                    linestyle="--",
                    linewidth=1,
                )
    axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4, integer=decimals == 0))
    ends = [when for _, times, _ in found for when in (times[0], times[-1])]
    if max(ends) > min(ends):
        axes.set_xlim(min(ends), max(ends))
    axes.yaxis.set_major_formatter(lambda value, _: shown(value, unit, decimals))
    _time_axis(axes)
    _legend(
        axes,
        panel,
        [(name, color, values[-1], values.max()) for color, (name, _, values) in zip(colors, found, strict=True)],
    )


def _time_axis(axes: Axes) -> None:
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda at, _: datetime.fromtimestamp(at, timezone.utc).strftime("%H:%M:%S"))
    axes.tick_params(colors=DIM, labelsize=7.5, length=0)
    axes.grid(color=EDGE, linewidth=0.7)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend(axes: Axes, panel: Mapping[str, Any], entries: Sequence[tuple[str, str, float, float]]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    unit, decimals = defaults["unit"], defaults.get("decimals")
    right = panel["options"]["legend"]["placement"] == "right"
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    box = axes.get_position()
    width, height = figure.get_size_inches() * DPI
    pixel_width = box.width * width
    if right:
        place = 1 + 14 / pixel_width
        for title, offset in (("Last", 0.80), ("Max", 1.0)):
            axes.text(
                1 + (14 + 330 * offset) / pixel_width,
                1.0,
                title,
                transform=axes.transAxes,
                color=COLORS["blue"],
                fontsize=7.5,
                ha="right",
                va="top",
            )
        for line, (name, color, last, most) in enumerate(entries[:9], 1):
            y = 1.0 - line * 17 / (box.height * height)
            axes.text(place, y, "━ ", transform=axes.transAxes, color=color, fontsize=8, va="top")
            axes.text(
                place + 18 / pixel_width,
                y,
                _cut(name, 34),
                transform=axes.transAxes,
                color=TEXT,
                fontsize=7.5,
                va="top",
            )
            for value, offset in ((last, 0.80), (most, 1.0)):
                axes.text(
                    1 + (14 + 330 * offset) / pixel_width,
                    y,
                    shown(value, unit, decimals),
                    transform=axes.transAxes,
                    color=TEXT,
                    fontsize=7.5,
                    ha="right",
                    va="top",
                )
        return
    x, line, drop = 0.0, 0, 0
    for name, color, _, _ in entries:
        text = _cut(name, 44)
        wide = (18 + len(text) * 5.5) / pixel_width
        if x and x + wide > (1.05 if line == 0 else 0.9):
            x, line = 0.0, line + 1
        if line > 1:
            drop += 1
            continue
        y = -(30 + line * 15) / (box.height * height)
        axes.text(x - 0.02, y, "━", transform=axes.transAxes, color=color, fontsize=8, va="center")
        axes.text(x - 0.02 + 16 / pixel_width, y, text, transform=axes.transAxes, color=TEXT, fontsize=7.5, va="center")
        x += wide + 8 / pixel_width
    if drop:
        axes.text(
            1.0,
            -(45) / (box.height * height),
            f"and {drop} more",
            transform=axes.transAxes,
            color=DIM,
            fontsize=7,
            va="center",
            ha="right",
        )


def _cut(text: str, most: int) -> str:
    text = re.sub(r"\S+/(tools/)", r"\1", text)
    text = re.sub(r"127\.0\.0\.1:(\d+)", r"host:\1", text)
    return text if len(text) <= most else text[: most // 2 - 1] + "…" + text[-most // 2 :]


def stat(axes: Axes, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """Large numbers, coloured by the thresholds, over their history."""
    defaults, found = panel["fieldConfig"]["defaults"], lines(panel, answers)
    background = panel["options"]["colorMode"] == "background"
    axes.axis("off")
    for place, (name, times, values) in enumerate(found[:4]):
        part = axes.inset_axes((place / len(found[:4]), 0, 1 / len(found[:4]), 1))
        part.axis("off")
        part.set_xlim(0, 1)
        part.set_ylim(0, 1)
        color = _threshold_color(panel, values[-1])
        if background:
            part.add_patch(
                FancyBboxPatch(
                    (0.01, 0.02), 0.98, 0.96, boxstyle="round,pad=0,rounding_size=0.02", color=color, alpha=0.85
                )
            )
        if len(values) > 1 and panel["options"]["graphMode"] == "area":
            spark = part.inset_axes((0, 0, 1, 0.42))
            spark.axis("off")
            spark.fill_between(
                times, values, values.min() - 1e-12, color="white" if background else COLORS["blue"], alpha=0.22
            )
            spark.plot(times, values, color="white" if background else COLORS["blue"], linewidth=1)
        text = "white" if background else (color if color != TEXT else COLORS["blue"])
        part.text(
            0.5,
            0.56,
            shown(values[-1], defaults["unit"], defaults.get("decimals")),
            ha="center",
            va="center",
            fontsize=23,
            color=text,
            weight="bold",
        )
        part.text(
            0.5, 0.86, _cut(name, 26), ha="center", va="center", fontsize=9, color="white" if background else TEXT
        )


def bar_gauge(axes: Axes, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """A bar for each series."""
    defaults, found = panel["fieldConfig"]["defaults"], lines(panel, answers)[:14]
    most = defaults.get("max") or max(values[-1] for _, _, values in found) or 1
    axes.set_ylim(max(4, len(found)), 0)
    axes.set_xlim(0, 1)
    axes.axis("off")
    scale = mpl.colormaps["RdYlGn"] if defaults["color"]["mode"] == "continuous-RdYlGr" else mpl.colormaps["Blues"]
    for place, (name, _, values) in enumerate(found):
        share = min(1.0, values[-1] / most)
        axes.add_patch(Rectangle((0.36, place + 0.18), 0.5, 0.64, color=EDGE))
        axes.add_patch(Rectangle((0.36, place + 0.18), 0.5 * share, 0.64, color=scale(0.35 + 0.55 * share)))
        axes.text(0.35, place + 0.5, _cut(name, 40), ha="right", va="center", color=TEXT, fontsize=8)
        axes.text(
            0.875,
            place + 0.5,
            shown(values[-1], defaults["unit"], defaults.get("decimals")),
            va="center",
            color=TEXT,
            fontsize=8.5,
            weight="bold",
        )


def table(axes: Axes, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """Rows of labels and values, joined as the transformations say."""
    organize = next(each["options"] for each in panel["transformations"] if each["id"] == "organize")
    fields = sorted(organize["indexByName"], key=organize["indexByName"].__getitem__)
    rows: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    labels = [field for field in fields if not field.startswith("Value")]
    for answer in answers:
        field = f"Value #{answer.letter}" if len(panel["targets"]) > 1 else "Value"
        for series in answer.series:
            kept = {name: series["metric"].get(name, "") for name in labels}
            match = next((row for row in rows.values() if all(row.get(n) == v or not v for n, v in kept.items())), None)
            row = match if match is not None else rows.setdefault(tuple(kept.items()), dict(kept))
            row[field] = float(series["value"][1])
    looks = {
        each["matcher"]["options"]: {prop["id"]: prop["value"] for prop in each["properties"]}
        for each in panel["fieldConfig"]["overrides"]
    }
    axes.axis("off")
    most = int(panel["gridPos"]["h"] * UNIT / 27) - 2
    axes.set_xlim(0, 1)
    axes.set_ylim(most + 1, 0)
    weights = np.array(
        [
            2.6 if field in ("function", "finding", "alertname", "instance") else 1.6 if field in labels else 1.3
            for field in fields
        ]
    )
    starts = np.concatenate([[0], np.cumsum(weights / weights.sum())])
    for place, field in enumerate(fields):
        title = organize["renameByName"][field]
        pixels = (starts[place + 1] - starts[place]) * panel["gridPos"]["w"] * WIDTH / 24
        heading = _cut(title, max(6, int(pixels / 7.0)))
        axes.text(starts[place] + 0.006, 0.5, heading, color=COLORS["blue"], fontsize=8.5, va="center", weight="bold")
        for line, row in enumerate(list(rows.values())[:most], 1):
            value = row.get(field, "")
            mapped = (looks[title].get("mappings") or [{"options": {}}])[0]["options"].get(
                value if isinstance(value, str) else _plain(value, 0)
            )
            text = value if isinstance(value, str) else shown(value, looks[title]["unit"])
            color = COLORS[mapped["color"]] if mapped else TEXT
            axes.text(
                starts[place] + 0.006,
                line + 0.5,
                _cut(mapped["text"] if mapped else text, max(6, int(pixels / 5.8))),
                color=color,
                fontsize=8,
                va="center",
            )
    for line in range(1, min(most, len(rows)) + 2):
        axes.axhline(line, color=EDGE, linewidth=0.7)
    if len(rows) > most:
        axes.text(0.994, most + 0.95, f"{len(rows) - most} more rows", color=DIM, fontsize=7.5, ha="right", va="bottom")


def heat_map(axes: Axes, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """Time to the right, buckets upwards, how many by colour."""
    found, unit = lines(panel, answers), panel["options"]["yAxis"]["unit"]
    if panel["options"]["calculate"]:
        at = np.array(sorted({when for _, times, _ in found for when in times}))
        edges = np.linspace(0, 1, 21)
        counts = np.zeros((20, len(at)))
        for _, times, values in found:
            counts[np.clip((values * 20).astype(int), 0, 19), np.searchsorted(at, times)] += 1
    else:
        by_edge = sorted((float(name), times, values) for name, times, values in found)
        at, limits = by_edge[0][1], [edge for edge, _, _ in by_edge]
        above = np.array([np.interp(at, times, values) for _, times, values in by_edge])
        counts = np.maximum(np.diff(above, axis=0, prepend=0), 0)
        used = [place for place in range(len(limits)) if counts[place].max() > 1e-9]
        low, high = max(0, min(used) - 1), min(len(limits) - 1, max(used) + 1)
        counts, limits = counts[low : high + 1], limits[low : high + 1]
        edges = np.arange(len(limits) + 1, dtype=float)
        axes.set_yticks(edges[1:], [shown(limit, unit) if limit != float("inf") else "∞" for limit in limits])
    colors = mpl.colors.LinearSegmentedColormap.from_list("oranges", [CARD, "#5a2d0c", "#c4530a", "#ff9830", "#fff3c4"])
    step = at[1] - at[0] if len(at) > 1 else 1.0
    axes.pcolormesh(np.append(at, at[-1] + step), edges, np.sqrt(counts), cmap=colors, edgecolors=CARD, linewidth=0.3)
    if panel["options"]["calculate"]:
        axes.yaxis.set_major_formatter(lambda value, _: shown(value, unit))
    _time_axis(axes)
    axes.grid(False)


def state_timeline(axes: Axes, panel: Mapping[str, Any], answers: Sequence[Answer]) -> None:
    """A band for each series, coloured by its state."""
    found = lines(panel, answers)[:20]
    options = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    for place, (_, times, values) in enumerate(found):
        step = times[1] - times[0] if len(times) > 1 else 1.0
        for when, value in zip(times, values, strict=True):
            color = COLORS[options[_plain(value, 0)]["color"]]
            axes.add_patch(Rectangle((when, place + 0.12), step, 0.76, color=color, linewidth=0))
    axes.set_xlim(found[0][1][0], found[0][1][-1])
    axes.set_ylim(len(found), 0)
    axes.set_yticks(np.arange(len(found)) + 0.5, [_cut(name, 34) for name, _, _ in found])
    _time_axis(axes)


DRAWERS: Mapping[str, Drawer] = {
    "timeseries": time_series,
    "stat": stat,
    "bargauge": bar_gauge,
    "table": table,
    "heatmap": heat_map,
    "state-timeline": state_timeline,
}


def picture(board: Board, answers: Sequence[Answer], out: Path, note: str) -> None:
    """Draws one dashboard into a file."""
    raw = panel_data.drawn(board)
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in raw["panels"])
    height = TOP + bottom * UNIT + 12
    figure = plt.figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI, facecolor=BACK)
    canvas = figure.add_axes((0, 0, 1, 1))
    canvas.set_xlim(0, WIDTH)
    canvas.set_ylim(height, 0)
    canvas.axis("off")
    _head(canvas, raw, note)
    by_id: dict[int, list[Answer]] = {}
    for each in answers:
        by_id.setdefault(alerting.panel_id(each.panel.key), []).append(each)
    for panel in raw["panels"]:
        at = panel["gridPos"]
        x, y = 8 + at["x"] * (WIDTH - 16) / 24, TOP + at["y"] * UNIT
        wide, high = at["w"] * (WIDTH - 16) / 24, at["h"] * UNIT
        if panel["type"] == "row":
            canvas.text(
                x + 6, y + high / 2 + 3, f"▾  {panel['title']}", color=TEXT, fontsize=12, weight="bold", va="center"
            )
        else:
            _panel(figure, canvas, panel, by_id[panel["id"]], (x, y, wide, high))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=DPI, facecolor=BACK)
    plt.close(figure)


def _head(canvas: Axes, raw: Mapping[str, Any], note: str) -> None:
    canvas.text(16, 22, raw["title"], color=TEXT, fontsize=15, weight="bold", va="center")
    canvas.text(WIDTH - 16, 22, note, color=DIM, fontsize=9, va="center", ha="right")
    x = 16.0
    for variable in raw["templating"]["list"]:
        value = (variable.get("current") or {}).get("text", "Prometheus")
        for text, color in ((variable["label"], COLORS["blue"]), (f"{value}  ▾", TEXT)):
            wide = 18 + len(text) * 7.2
            canvas.add_patch(Rectangle((x, 42), wide, 24, facecolor=CARD, edgecolor=EDGE))
            canvas.text(x + 9, 54, text, color=color, fontsize=9, va="center")
            x += wide
        x += 10
    canvas.text(
        WIDTH - 16, 54, "JAX dashboards  ▾     Last minutes     ⟳ 1m", color=TEXT, fontsize=9, va="center", ha="right"
    )


def _panel(
    figure: Figure,
    canvas: Axes,
    panel: Mapping[str, Any],
    answers: Sequence[Answer],
    box: tuple[float, float, float, float],
) -> None:
    x, y, wide, high = box
    full_width, full_height = figure.get_size_inches() * DPI
    canvas.add_patch(
        FancyBboxPatch(
            (x + 3, y + 3), wide - 6, high - 6, boxstyle="round,pad=0,rounding_size=3", facecolor=CARD, edgecolor=EDGE
        )
    )
    canvas.text(x + 12, y + 17, panel["title"], color=TEXT, fontsize=10, weight="bold", va="center")
    if panel["links"]:
        canvas.text(
            x + wide - 12,
            y + 17,
            "↗ runbook" if wide > 400 else "↗",
            color=COLORS["blue"],
            fontsize=8,
            va="center",
            ha="right",
        )
    if not any(each.series for each in answers):
        needs = answers[0].panel.needs
        said = panel["fieldConfig"]["defaults"].get("noValue") or "No data"
        canvas.text(x + wide / 2, y + high / 2 + 4, said, color=DIM, fontsize=12, ha="center", va="center")
        if needs and needs != "trouble":
            canvas.text(
                x + wide / 2,
                y + high / 2 + 24,
                f"needs: {needs.replace('_', ' ')}",
                color=DIM,
                fontsize=8.5,
                ha="center",
                va="center",
            )
        return
    plain = panel["type"] in ("stat", "bargauge", "table")
    left, under = (10, 10) if plain else (62, 24)
    if panel["type"] == "timeseries" and panel["options"]["legend"]["placement"] == "bottom":
        under = 62
    if panel["type"] == "state-timeline":
        left = 210
    right = 360 if panel["type"] == "timeseries" and panel["options"]["legend"]["placement"] == "right" else 14
    axes = figure.add_axes(
        (
            (x + left) / full_width,
            1 - (y + high - under) / full_height,
            (wide - left - right) / full_width,
            (high - under - 32) / full_height,
        ),
        facecolor="none",
    )
    DRAWERS[panel["type"]](axes, panel, answers)


def draw_run(folder: Path, names: Collection[str], seconds: float = 180) -> None:
    """Draws the named dashboards into a folder: of three programs and made-up devices that run for so many seconds."""
    plt.rcParams["font.family"] = "DejaVu Sans"
    with (
        panel_data.programs(3, seconds + 60) as addresses,
        panel_data.devices() as made_up,
        panel_data.host() as host,
        panel_data.Prometheus({"train": addresses, "made-up": made_up, "host": host}, FACTOR) as prometheus,
    ):
        time.sleep(seconds)
        now = time.time()
        span = Span(now - seconds, now, max(1.0, seconds / 200))
        for board in boards.boards():
            if board.name in names:
                devices = board.name == "devices"
                answers = list(panel_data.answers(board, prometheus.url, span, "made-up" if devices else "train"))
                out = folder / f"{board.name}.png"
                picture(board, answers, out, "made-up devices" if devices else "three real programs on the CPU")
                shrink(out)
