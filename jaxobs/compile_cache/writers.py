"""Which version of jaxlib stored an entry. The entry does not say; what jaxobs recorded next to an event log may.

The sidecar `jaxobs-cache-keys.jsonl` tells it for each key. Where it lacks one, the event log does: the process that
looked the key up in vain and compiled is the one that stored it, and its `manifest` names the versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jaxobs.base import json_lines
from jaxobs.base.errors import JaxobsError
from jaxobs.base.files import rotated
from jaxobs.base.json_lines import Damage
from jaxobs.reasons import cache_records


def of_keys(log: Path, damage: Damage | None = None) -> dict[str, str]:
    """Versions of jaxlib by cache key, from an event log or its directory; raises `JaxobsError` without one."""
    try:
        folder = log if log.is_dir() else log.parent
        found = {} if log.is_dir() else _from_events(log, damage or Damage())
        for record in cache_records.read(folder):
            version = record.values.get("jaxlib")
            if version and (record.result == "miss" or record.key not in found):
                found[record.key] = str(version)
    except OSError as error:
        raise JaxobsError(f"The event log `{log}` cannot be read: {error.strerror or error}.") from None
    return found


def _from_events(log: Path, damage: Damage) -> dict[str, str]:
    """Returns the versions by key, from events; a line that cannot be read is skipped."""
    versions: dict[str, str] = {}
    found = {}
    with rotated.opened(log) as file:
        for _, event in json_lines.objects(file, damage):
            process = f"{event.get('pid')} {event.get('process_index')}"
            if event.get("event") == "manifest" and isinstance(event.get("versions"), Mapping):
                versions[process] = str(event["versions"].get("jaxlib") or "")
            elif event.get("event") == "cache_lookup" and event.get("result") == "miss" and versions.get(process):
                found[str(event.get("key"))] = versions[process]
    return found
