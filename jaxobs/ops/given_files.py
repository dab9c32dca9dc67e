"""Files that an operator gives: read, and what is wrong with them said with its place, its value and what was meant."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxobs.base.errors import SettingError, did_you_mean

MOST_LETTERS = 2**20


def text(path: Path) -> str:
    """Returns the text of a file. Raises SettingError if it cannot be read, is not UTF-8, or is too long."""
    try:
        with path.open(encoding="utf-8") as file:
            found = file.read(MOST_LETTERS + 1)
    except OSError as error:
        raise SettingError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"{path} is not UTF-8 text: {error}.") from error
    if len(found) > MOST_LETTERS:
        raise SettingError(f"{path} has more than {MOST_LETTERS:,} letters. Check whether this is the right file.")
    return found


def toml(path: Path) -> dict[str, Any]:
    """Returns what a TOML file holds. Raises SettingError if it cannot be read or is not TOML."""
    written = text(path)
    try:
        return tomllib.loads(written)
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not valid TOML: {error}.") from error


def mistakes(error: Any, where: object, known: Mapping[str, Iterable[str]] | str) -> SettingError:
    """Returns an error with a sentence for each mistake that a `pydantic.ValidationError` has.

    Args:
      where: the file, which each sentence begins with.
      known: the names that may be used, by the table that they are in (the empty name for those in none), or what to
        say of an unknown name.
    """
    return SettingError("\n".join(f"{where}: {_sentence(each, known)}" for each in error.errors()))


def _sentence(mistake: Any, known: Mapping[str, Iterable[str]] | str) -> str:
    if mistake["type"] == "value_error":
        return str(mistake["ctx"]["error"])
    place = ".".join("for" if each == "for_" else str(each) for each in mistake["loc"] if each != "[key]")
    table, _, name = place.rpartition(".")
    if mistake["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        if isinstance(known, str):
            return f"`{place}` is unknown{known}."
        names = sorted(known.get(table.partition(".")[0], known[""]))
        return f"`{place}` is unknown. {did_you_mean(name, names)}Known here: {', '.join(names)}."
    if mistake["type"] in ("missing", "missing_argument"):
        return f"`{place}` is missing."
    return f"`{place or 'it'}` is {mistake['input']!r:.80}: {mistake['msg'][0].lower()}{mistake['msg'][1:]}."
