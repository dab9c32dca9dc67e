"""Kinds of errors by the texts of exceptions, whatever their type; their table is `error_texts.json`. No JAX.

The same trouble comes as `JaxRuntimeError`, `ValueError` or `RuntimeError`, under a status that says little: so the
text decides, and the type only where a text of the user's could read alike. Texts: JAX's and XLA's source, the pages
of XLA's error codes, and what users pasted into issues. Of what makes the runtime abort the process nothing is seen
here: there is no exception.
"""

import re
from dataclasses import dataclass

from jaxobs.base import data_files

MOST_TEXT = 8_000
"""Characters that are read."""


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """A kind of error."""

    kind: str
    signs: tuple[str, ...]
    """Regular expressions; one of them is enough."""
    meaning: str
    advice: str
    types: tuple[str, ...] = ()
    """Names of exception types of which it must be one; any where empty."""


KINDS = tuple(
    ErrorKind(name, tuple(table.get("signs", ())), table["meaning"], table["advice"], tuple(table.get("types", ())))
    for name, table in data_files.table(__name__).items()
)
"""The first whose signs are found counts. Read with the module: an error may leave no file to be opened."""

BY_NAME = {each.kind: each for each in KINDS}
_PATTERNS = tuple((each, re.compile("|".join(each.signs), re.DOTALL)) for each in KINDS if each.signs)


def recognise(types: tuple[str, ...], text: str) -> ErrorKind | None:
    """Returns the kind of an error by the names of its type and bases and its text; None if it is unknown."""
    text = text[:MOST_TEXT]
    for each, pattern in _PATTERNS:
        if (not each.types or any(name in types for name in each.types)) and pattern.search(text):
            return each
    return None
