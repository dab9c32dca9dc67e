"""Magics and events that `%load_ext jaxobs` adds to IPython.

A cell that begins with `%%jaxobs` is run by IPython itself, which only does not see that line: results, tracebacks, the
numbers of lines and `await` are as without it. What the cell did is taken down by IPython's events around it.
"""

import re
from collections.abc import Callable
from typing import Any

from jaxobs.base import config
from jaxobs.base.errors import did_you_mean
from jaxobs.base.guard import guard
from jaxobs.facts.cells import Cell
from jaxobs.facts.events import Event
from jaxobs.session import lifecycle
from jaxobs.session.notebook.measuring import Measurement
from jaxobs.state import store
from jaxobs.state.wall import Scope, Wall
from jaxobs.views import notebook
from jaxobs.views.notebook import formatters

LEAST_SECONDS = 1.0
"""Default of the seconds of compilation from which a cell gets its line with `%jaxobs on`."""

_MARK = re.compile(r"%%jaxobs(?:[ \t]+(?P<rest>.*))?\s*\Z")

OFF = "jaxobs is off: `JAXOBS_DISABLED` is set."

HELP = """Show what JAX did in this process.

  %jaxobs               a summary: the verdict, where the time went, functions, memory
  %jaxobs verdict       everything that is wrong, with evidence
  %jaxobs functions     every function that compiled
  %jaxobs memory        devices and the largest groups of live arrays
  %jaxobs last          the details of the last cell that compiled something
  %jaxobs on [SECONDS]  a line below each cell that compiles for longer than that (default: 1)
  %jaxobs off           no such lines
  %%jaxobs              at the top of a cell: what the cell compiled and why, where its time and memory went
"""


class Extension:
    """The magics and the events of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._installed = False
        self._running: list[Measurement | None] = []
        """Cells that run now: one may run another."""
        self._least: float | None = None
        """Seconds of compilation from which a cell gets its line with `%jaxobs on`."""
        self._last: Cell | None = None
        self._rest: Scope | None = None
        """Between two cells: nothing runs."""
        self._unsubscribe: Callable[[], None] = _nothing
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "": self._summary, "verdict": self._verdict, "functions": self._functions, "memory": self._memory,
            "last": self._show_last, "on": self._on, "off": self._off,
        }  # fmt: skip

    def load(self) -> None:
        """Observes the process, if nobody does, and registers everything with IPython."""
        shell = self._shell
        shell.input_transformers_cleanup.append(without_mark)
        shell.register_magic_function(self._line, "line", "jaxobs")
        shell.register_magic_function(self._cell, "cell", "jaxobs")
        if config.disabled():
            return
        self._installed = not store.current().installed
        lifecycle.install()
        formatters.register(shell)
        self._unsubscribe = store.current().subscribe(self._see)
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)

    def unload(self) -> None:
        """Undoes `load`."""
        shell = self._shell
        self._unsubscribe()
        self._resting(False)
        for event, callback in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
            if callback in shell.events.callbacks[event]:
                shell.events.unregister(event, callback)
        if without_mark in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.remove(without_mark)
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop("jaxobs", None)
        formatters.unregister(shell)
        if self._installed:
            lifecycle.uninstall()

    # ------------------------------------------------------------------------------------- around each cell

    @guard("notebook.see")
    def _see(self, event: Event) -> None:
        for cell in self._running:
            if cell is not None:
                cell.tally.add(event)

    def _before(self, info: Any) -> None:
        self._resting(False)
        self._running.append(None)
        self._begin(marked(info.raw_cell))

    @guard("notebook.before")
    def _begin(self, closely: bool) -> None:
        self._running[-1] = Measurement(store.current(), closely=closely, snapshot=lifecycle.fresh_snapshot)

    def _after(self, result: Any) -> None:
        if self._running:  # not for the cell that loaded the extension
            self._end(self._running.pop(), result)
        self._resting(not self._running)

    @guard("notebook.rest")
    def _resting(self, rests: bool) -> None:
        """Ends a cell: the time until the next one is nobody's."""
        wall = store.current().part(Wall)
        if self._rest is not None:
            wall.leave(self._rest, alone=True)
        self._rest = wall.enter("idle") if rests else None

    @guard("notebook.after")
    def _end(self, measurement: Measurement | None, result: Any) -> None:
        if measurement is None:
            return
        number = getattr(result, "execution_count", None) if not self._running else None
        cell = measurement.ended(number, failed=not getattr(result, "success", True))
        if measurement.closely:
            formatters.publish(self._shell, notebook.cell(cell))
        elif self._least is not None and not self._running and cell.compile_seconds > self._least:
            formatters.publish(self._shell, notebook.line(cell))
        if cell.compilations or measurement.closely:
            self._last = cell

    # ---------------------------------------------------------------------------------------------- magics

    def _cell(self, line: str, cell: str) -> None:
        """At the top of a cell: what the cell compiled and why, how long it took, and where its memory went.

        The cell runs as without it. Below its own output come its wall time by category, its compilations with cause
        and reason, the costliest first, the live arrays that it added, and the findings that it brought.
        """
        # For `run_cell_magic`: of a cell that begins with the mark IPython never sees it.
        measurement = Measurement(store.current(), closely=True, snapshot=lifecycle.fresh_snapshot)
        self._running.append(measurement)
        try:
            self._shell.ex(self._shell.transform_cell(cell))
        finally:
            self._running.remove(measurement)
            self._end(measurement, None)

    def _line(self, line: str) -> None:
        words = line.split()
        name = words[0] if words else ""
        if name not in self._commands:
            from IPython.core.error import UsageError

            meant = did_you_mean(name, [each for each in self._commands if each])
            raise UsageError(f"%jaxobs has no `{name}`. {meant}\n{HELP}")
        if config.disabled():
            formatters.publish(self._shell, [notebook.Say(OFF)])
            return
        self._commands[name](words[1:])

    _line.__doc__ = HELP

    def _show(self, blocks: list[notebook.Block]) -> None:
        formatters.publish(self._shell, blocks)

    def _summary(self, words: list[str]) -> None:
        self._show(notebook.snapshot(lifecycle.snapshot()))

    def _verdict(self, words: list[str]) -> None:
        found = lifecycle.snapshot().verdict
        assert found is not None
        self._show(notebook.verdict(found, len(found.findings)))

    def _functions(self, words: list[str]) -> None:
        self._show(notebook.functions(lifecycle.snapshot()))

    def _memory(self, words: list[str]) -> None:
        self._show(notebook.memory(lifecycle.snapshot()))

    def _show_last(self, words: list[str]) -> None:
        if self._last is None:
            self._show([notebook.Say("No cell has compiled anything since `%load_ext jaxobs`.")])
        else:
            self._show(notebook.cell(self._last))

    def _on(self, words: list[str]) -> None:
        self._least = _seconds(words[0]) if words else LEAST_SECONDS
        told = f"A line follows each cell that compiles for more than {self._least:g} s. `%jaxobs off` ends that."
        self._show([notebook.Say(told)])

    def _off(self, words: list[str]) -> None:
        self._least = None


def marked(cell: str) -> bool:
    """Returns whether a cell begins with `%%jaxobs`, possibly among other cell magics."""
    return any(_MARK.match(line) for line in _magics(cell.lstrip().splitlines()))


def without_mark(lines: list[str]) -> list[str]:
    """Returns a cell's lines with a comment instead of `%%jaxobs`, so that the others keep their numbers."""
    for place, line in enumerate(_magics(lines)):
        if _MARK.match(line):
            # Not where another cell magic is to be the first line.
            instead = [f"# {line}"] if len(_magics(lines)) == 1 else []
            return [*lines[:place], *instead, *lines[place + 1 :]]
    return lines


def _magics(lines: list[str]) -> list[str]:
    """Returns the cell magics that lines begin with."""
    found: list[str] = []
    for line in lines:
        if not line.startswith("%%"):
            break
        found.append(line)
    return found


def _seconds(text: str) -> float:
    from IPython.core.error import UsageError

    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not found >= 0:
        raise UsageError(f"%jaxobs on: `{text}` is not a number of seconds")
    return found


def _nothing() -> None:
    """Nothing to undo."""
