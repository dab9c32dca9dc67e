"""The agent's incident reports: one JSON file for each incident, whoever wrote it. Read as data, within bounds."""

import os
import re
import stat
from typing import Any

from jaxobs.base import json_lines

MOST_BYTES = 4 * 2**20
MOST_FILES = 10_000
MOST_READ = 20
_MOST_SHORT = 16
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def known(folder: str) -> list[str]:
    """Returns the ids of all reports, the latest file first. Links and names that no report has are left out."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for count, each in enumerate(entries):
                if count >= MOST_FILES:
                    break
                name = each.name.removesuffix(".json")
                if name != each.name and _ID.fullmatch(name) and each.is_file(follow_symlinks=False):
                    found.append((each.stat(follow_symlinks=False).st_mtime_ns, name))
    except OSError:
        return []
    return [name for _, name in sorted(found, reverse=True)]


def read(folder: str, id: str) -> dict[str, Any] | None:
    """Returns a report.

    Args:
      id: one of `known`.
    """
    if not _ID.fullmatch(id):
        return None
    try:
        file = os.open(os.path.join(folder, f"{id}.json"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(file, "rb") as report:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            text = report.read(MOST_BYTES + 1)
        body = json_lines.loads(text) if len(text) <= MOST_BYTES else None
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) and "id" in body else None


def short(folder: str, id: str) -> dict[str, Any]:
    """Returns the fields of a report that are not lists and no objects, next to its id."""
    body = read(folder, id)
    if body is None:
        return {"id": id, "status": "no_data"}
    scalars = {key: value for key, value in body.items() if not isinstance(value, dict | list)}
    return {"id": id} | dict([each for each in scalars.items() if each[0] != "id"][:_MOST_SHORT])
