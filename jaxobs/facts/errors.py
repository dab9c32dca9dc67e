"""Exceptions that ended a call or the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxobs.facts.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(Event):
    """An exception that nothing caught: the end of the program, unless it runs at a prompt.

    An error of a kind that jaxobs knows is recorded as it leaves an instrumented function, too; see `uncaught`.
    """

    kind: ClassVar[str] = "error"

    error: str
    """The exception's type."""
    message: str | None = None
    """The exception's text, the first 2,000 characters; None if values must not be recorded."""
    call_site: str | None = None
    """`file:line` in the user's code, the innermost."""
    report: str | None = None
    """The text file with the last minutes before it; None if none was written, as at a prompt or in a notebook."""
    error_kind: str | None = None
    """Kind of the error according to its text, one of `recorder.error_texts.KINDS`, whatever its type; None if
    unknown."""
    meaning: str | None = None
    """A sentence for a person: the meaning of such an error."""
    advice: str | None = None
    """Advice on the error."""
    function: str | None = None
    """The instrumented function that it left, as in `Compilation`; None if it was detected elsewhere."""
    uncaught: bool = True
    """False if it was detected as it left an instrumented function, and the program may have caught it."""
