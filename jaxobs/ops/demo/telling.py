"""How the demo speaks: plain lines, with colours and a progress bar where `rich` and a terminal are there."""

import contextlib
import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.facts.snapshot import Snapshot
from jaxobs.ops.demo.troubles import Seen
from jaxobs.views.terminal import Surface, functions, make_console
from jaxobs.views.terminal.lines import Column, Line, heading, length, plain, row, section, wrapped
from jaxobs.views.terminal.screen import STYLES, glyphs_for
from jaxobs.views.terminal.text import duration, short

PLAIN_WIDTH = 100
QUIET_SECONDS = 10.0
"""Time between two plain lines about the progress of a run that is paced."""


class Teller:
    """Says what happens; the progress bar, where there is one, stays below."""

    def __init__(self, *, every_epoch: bool, known: Sequence[tuple[str, str]] = ()) -> None:
        self._known = known
        self._console: Any = None
        self._progress: Any = None
        self._task: Any = None
        self._every_epoch = every_epoch
        self._told_at = 0.0
        if sys.stdout.isatty():
            with contextlib.suppress(MissingExtraError):
                self._console = make_console("jaxobs demo")
        encoding = sys.stdout.encoding or "utf-8"
        width = min(self._console.width, 120) if self._console else PLAIN_WIDTH
        colour = bool(self._console and self._console.color_system and not self._console.no_color)
        self.surface = Surface(width, None, glyphs_for(encoding), encoding, colour=colour)

    def line(self, *pieces: tuple[str, str]) -> None:
        """Prints styled pieces as a line."""
        if self._console is None:
            print("".join(text for text, _ in pieces).rstrip(), flush=True)
            return
        from rich.text import Text

        styled = ((text, STYLES.get(style, "none")) for text, style in pieces)
        self._console.print(Text.assemble(*styled), soft_wrap=True)

    def paragraph(self, text: str, style: str = "", indent: int = 4) -> None:
        """A text wrapped to the width."""
        for part in self.surface.wrapped(text, indent + 1, 12):
            self.line((" " * indent, ""), (part, style))

    def addresses(self) -> None:
        """Prints the addresses to look at, one a line."""
        width = max((len(name) for name, _ in self._known), default=0)
        for name, address in self._known:
            self.line((f"  {name:<{width}}  ", "dim"), (address, "busy"))

    # -------------------------------------------------------------------------------------- progress

    def begin(self, total: float | None) -> None:
        """Shows progress from now on; `total` epochs, or seconds in a paced run."""
        if self._console is None or not self._console.is_terminal:
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self._progress = Progress(
            SpinnerColumn("line" if self.surface.encoding != "utf-8" else "dots"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("[dim]{task.fields[left]}"),
            console=self._console,
            transient=True,
            expand=True,
        )
        self._task = self._progress.add_task("starting", total=total, left="")
        self._progress.start()

    def progress(self, done: float, said: str, left: str, *, important: bool = False) -> None:
        """How far the run is."""
        if self._progress is not None:
            self._progress.update(self._task, completed=done, description=said, left=left)
        elif self._every_epoch or important or time.monotonic() - self._told_at >= QUIET_SECONDS:
            self._told_at = time.monotonic()
            self.line((f"  {said}", ""), (f"  {left}" if left else "", "dim"))

    def end(self) -> None:
        """Takes the progress bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    # ------------------------------------------------------------------------------------ the mistakes

    def trouble(self, seen: Seen) -> None:
        """A mistake that was just made: its name, what jaxobs says of it, its cost and its cure."""
        glyphs, trouble = self.surface.glyphs, seen.trouble
        self.line()
        self.line((f"{glyphs.marker} {trouble.name}", "warn"))
        self.paragraph(trouble.mistake)
        if not seen.compilations:
            self.paragraph("jaxobs saw no compilation, although one was expected.", "bad")
            return
        newest = seen.compilations[-1]
        told = " ".join(newest.reason.split())
        self.paragraph(f'jaxobs: "{told}"', "cause")
        times = len(seen.compilations)
        causes = ", ".join(f"{cause} {glyphs.count}{n}" if n > 1 else cause for cause, n in seen.causes.items())
        facts = [
            short(newest.function).rpartition(".")[2],
            "recompiled" if times == 1 else f"compiled {times} times",
            f"cause {causes}",
            f"cost {duration(seen.seconds)}",
        ]
        self.paragraph(f" {glyphs.separator} ".join(facts), "dim")
        self.paragraph(f"cure: {trouble.cure}", "good")
        if self._progress is None:
            self.line()

    # ------------------------------------------------------------------------------------- the summary

    def summary(self, snapshot: Snapshot, seen: Sequence[Seen], seconds: float) -> None:
        """Two tables: what compiled and why, and what each mistake cost."""
        surface = self.surface
        compiled = sum(each.compiled for each in snapshot.functions)
        self.line()
        self._show([section("What compiled", f"{compiled} compilations", surface)])
        self._show(functions.table(_with_short_names(snapshot), {}, (), snapshot.time, surface, 12))
        self.line()
        self._show([section("What the mistakes cost", "", surface)])
        self._show(_cost_table(seen, surface))
        compiling = sum(sum(each.phase_seconds.values()) for each in snapshot.functions)
        wasted = sum(each.seconds for each in seen)
        self.line()
        share = compiling / seconds if seconds else 0.0
        self.paragraph(
            f"{duration(compiling)} of the {duration(seconds)} that the run took went into compiling "
            f"({share:.0%}); the mistakes account for {duration(wasted)} of it ({wasted / (compiling or 1):.0%}).",
            indent=1,
        )

    def _show(self, lines: Sequence[Line]) -> None:
        for each in lines:
            self.line(*each)


def _with_short_names(snapshot: Snapshot) -> Snapshot:
    """Returns the snapshot with the demo's own functions by their last name."""
    renamed = tuple(
        dataclasses.replace(each, name=each.name.rpartition(".")[2])
        if each.name.startswith("jaxobs.ops.demo.")
        else each
        for each in snapshot.functions
    )
    return dataclasses.replace(snapshot, functions=renamed)


def _cost_table(seen: Sequence[Seen], surface: Surface) -> list[Line]:
    if not seen:
        return [plain(" None so far.", "dim")]
    name = max(len(each.trouble.name) for each in seen)
    cause = max((len(_main_cause(each)) for each in seen), default=0)
    columns = [
        Column("mistake", name),
        Column("seconds", 8, right=True),
        Column("times", 5, right=True),
        Column("cause", max(cause, 5)),
    ]
    room = surface.width - sum(column.width + 2 for column in columns) - 2
    columns.append(Column("cure", room))
    rows = [heading(columns)]
    for mistake in seen:
        cure = wrapped(mistake.trouble.cure, room, 3, surface.glyphs)
        cells = [
            plain(mistake.trouble.name, "warn"),
            plain(duration(mistake.seconds), "number"),
            plain(str(len(mistake.again))),
            plain(_main_cause(mistake), "cause"),
            plain(cure[0], "good"),
        ]
        rows.append(row(columns, cells))
        indent = length(rows[-1]) - room
        rows += [[(" " * indent, ""), (part, "good")] for part in cure[1:]]
    return rows


def _main_cause(seen: Seen) -> str:
    return max(seen.again, key=lambda each: sum(each.phases.values())).cause if seen.again else "not seen"
