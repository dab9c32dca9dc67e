"""Tables of data that lie as JSON next to the modules that read them: it is read in no time when jaxobs starts."""

import json
import pkgutil
from typing import Any


def table(module: str) -> dict[str, Any]:
    """Returns what the JSON file of a module's own name holds: `peaks.json` next to `peaks.py`.

    Raises:
      OSError: the file is missing.
    """
    content = pkgutil.get_data(module, f"{module.rpartition('.')[2]}.json")
    assert content is not None, f"the loader of {module} reads no files"
    found: dict[str, Any] = json.loads(content)
    return found
