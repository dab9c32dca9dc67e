"""A hostile host program, and how it is started."""

from __future__ import annotations

from dataclasses import dataclass

HERE = "JAXOBS"
"""A line of a program that stands for jaxobs' own line; without it, that is the first line."""


@dataclass(frozen=True)
class Case:
    """A program that is hard on whatever lives in its process; it prints the same each time."""

    name: str
    hard: str
    """How it is hard, for the table."""
    source: str
    flags: tuple[str, ...] = ()
    """Python's."""
    given: tuple[str, ...] = ("{program}",)
    """How Python is given the program; `{program}` is its path, `{source}` its text, `{zip}` an archive of it."""
    arguments: tuple[str, ...] = ()
    stdin: str = ""
    """Text that is typed; `{source}` is the program's text."""
    shell: str = ""
    """A shell command around it, in which "$@" starts Python."""
    needs: tuple[str, ...] = ()
    """Modules, and commands of the system, without which it cannot run."""
    processes: int = 1
    """Each loads jaxobs for itself."""
    python: str = ""
    """The version of Python that it needs, from .venvs."""
    without: tuple[str, ...] = ()
    """Ways in which it has no meaning."""
    prefix: str = ""
    """A pattern of lines of standard error that count as jaxobs' own."""
    environment: tuple[tuple[str, str], ...] = ()
