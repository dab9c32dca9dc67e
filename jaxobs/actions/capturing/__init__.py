"""Captures on demand: by `jaxobs.capture`, by HTTP (`routes`) and by a signal (`on_signal`), all through one runner."""

from typing import Any

from jaxobs import actions
from jaxobs.actions.capturing import runner
from jaxobs.actions.capturing.runner import Capture
from jaxobs.state.store import current

__all__ = ["Capture", "capture"]


def capture(action: str, /, **parameters: Any) -> Capture:
    """Captures something of this process into a file or directory: what holds its memory, or a trace of some steps.

        jaxobs.capture("memory").path             # a file for pprof
        trace = jaxobs.capture("profile", steps=5)  # the program goes on, and makes the steps
        ...
        trace.wait().path                         # a directory for XProf

    Needs neither `install` nor an endpoint. One runs at a time, one in `capture_interval` seconds, and together they
    take at most `capture_max_bytes`. What cannot be captured now is not an error, which would end the program: look at
    `result` and `detail`, and at the program's log.

    Args:
      action: `memory` (returns when it is done) or `profile` (returns when the trace runs).
      **parameters: of `profile`: `steps` (calls of one instrumented function, 5 unless given), `function` (which),
        `seconds` (the trace ends then at the latest; 30, or 5 if nothing is instrumented), `python` (whether Python
        calls are in the trace).

    Raises:
      ParameterError: there is no such action, or a parameter is unknown or does not fit.
    """
    begun = runner.of(current()).begin(action, parameters, "python")
    return begun.wait(runner.START_SECONDS) if actions.known()[action].WAITED_FOR else begun
