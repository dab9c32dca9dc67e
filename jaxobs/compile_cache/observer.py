"""Inside the command that is tried: writes down what compiled, with the cache directory in force at that moment.

Besides the program's own settings and event log, which stay what they are.
"""

import json
import os

from jaxobs import internals
from jaxobs.facts.events import Event, as_event
from jaxobs.session import lifecycle
from jaxobs.state import store

KINDS = ("compilation", "cache_lookup", "step")
OBSERVED = "observed"
DIRECTORY, MINIMUM = "cache_directory", "min_compile_seconds"
"""Fields that are added to a compilation: where JAX looked for entries, and what compiles faster is not stored."""


def start(folder: str) -> None:
    """Observes this process and its forked children; a line for each event goes to `<folder>/<pid>.jsonl`.

    Raises:
      SettingError: a variable `JAXOBS_...` of the program's environment has a value that it cannot have.
    """
    writer = _Writer(folder)
    writer.append({"event": OBSERVED, "pid": os.getpid()})
    store.current().subscribe(writer)
    lifecycle.install()
    if store.current().settings.event_log is None:
        # Where there is an event log, jaxobs keeps the parts of each cache key beside it, and compares them.
        lifecycle.install(event_log=os.path.join(os.path.dirname(folder), "events.jsonl"))


class _Writer:
    """Appends events, opening the file each time: compiles are rare, and a forked child has a file of its own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, event: Event) -> None:
        if event.kind not in KINDS:
            return
        body = as_event(event)
        if event.kind == "compilation":
            body[DIRECTORY] = internals.persistent_cache()[1]
            body[MINIMUM] = internals.cache_state.minimum_compile_seconds()
        self.append(body)

    def append(self, body: dict[str, object]) -> None:
        path = os.path.join(self._folder, f"{os.getpid()}.jsonl")
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            os.write(file, (json.dumps(body) + "\n").encode())
        finally:
            os.close(file)
