"""`profile`: a trace for XProf of some steps, ended by time where steps do not come.

The trace begins and ends on a thread of ours, between bytecodes of the program: nobody waits for it. So the first and
the last step are in it in part, and the last may be one more than was asked for where steps take less than a
millisecond.
"""

import inspect
import time
from collections.abc import Mapping
from typing import Any

from jaxobs import internals
from jaxobs.actions.capturing.action_types import Job, Outcome, Parameter, Refused
from jaxobs.base.errors import ParameterError
from jaxobs.base.guard import guarded
from jaxobs.state.host_record import HostRecord
from jaxobs.state.loops import Loops
from jaxobs.state.store import Store
from jaxobs.state.wall import Wall

NAME = "profile"
ABOUT = "A trace of what host and devices do in the next steps, for XProf, TensorBoard or Perfetto."
PARAMETERS = (
    Parameter(
        "steps", int, 5, ("Steps to trace: of one loop (`jaxobs.step`), otherwise calls of one "
                         "instrumented function."),
        least=1, most=1000,
    ),
    Parameter(
        "function", str, None,
        "Loop whose steps count, if there are loops, otherwise the instrumented function whose calls "
        "are the steps; by default the most active one.",
    ),
    Parameter(
        "seconds", float, None,
        "Seconds after which the trace ends at the latest; by default 30, or 5 if no function is instrumented.",
        least=0.01, most=600,
    ),
    Parameter("python", bool, False, "Whether Python calls are traced too, which slows the program down."),
)  # fmt: skip
WAITED_FOR = False

MOST_SECONDS = 30.0
UNCOUNTED_SECONDS = 5.0
"""How long a trace takes where there are no steps to count."""
_LEAST_PAUSE, _MOST_PAUSE = 0.001, 0.05
_PAUSES_A_STEP = 20
_MOST_NAMED = 20


def steps_made(store: Store) -> Mapping[str, int]:
    """Returns the steps so far, by loop that the program declares; else the calls of instrumented functions."""
    return store.part(Loops).steps() or store.calls()


def check(store: Store, values: Mapping[str, Any]) -> None:
    """Refuses a function whose calls nobody counts.

    Raises:
      ParameterError: no loop has that name, or the function is not instrumented; the message lists those there are.
    """
    function, known = values["function"], sorted(steps_made(store))
    if function is not None and function not in known and store.part(Loops).any:
        raise ParameterError(
            f"`function` is {function!r:.200}, which is not a known loop. Known loops: {', '.join(known)}."
        )
    if function is not None and function not in known:
        listed = ", ".join(known[:_MOST_NAMED]) or "none, see `jaxobs.jit`, `jaxobs.instrument` and `--instrument`"
        raise ParameterError(
            f"`function` is {function!r:.200}, which is not instrumented. Instrumented functions: {listed}."
        )


def run(job: Job) -> Outcome:
    """Traces until the steps were made, the time is over, or it is to stop; raises `Refused` if a trace runs."""
    trace = _start(job)
    began = time.monotonic()
    host = None
    try:
        host = HostRecord(job.store.part(Wall))
        before = dict(steps_made(job.store))
        job.started()
        made, function = _wait(job, before, began)
    finally:
        seconds = time.monotonic() - began
        if host is not None:
            host.stop()
        ended_here = _stop(trace)
    with guarded("actions.profile.host"):
        host.write(job.folder)
    return Outcome(_told(job, made, function, seconds, ended_here))


def _start(job: Job) -> Any:
    """Starts the trace, and returns what to know it by."""
    import jax

    options = {}
    if "profiler_options" in inspect.signature(jax.profiler.start_trace).parameters:
        options["profiler_options"] = jax.profiler.ProfileOptions()
        options["profiler_options"].python_tracer_level = int(job.values["python"])
    try:
        jax.profiler.start_trace(job.folder, **options)
    except RuntimeError:
        if internals.running_trace() is None:
            raise
        raise Refused(
            "The program's own trace is running (`jax.profiler`), and JAX allows one at a time. Try "
            "again when it has ended."
        ) from None
    return internals.running_trace()


def _stop(trace: Any) -> bool:
    """Ends the trace and writes it; False where the program has ended it meanwhile, and may have begun another."""
    import jax

    if internals.running_trace() is not trace:
        return False
    try:
        jax.profiler.stop_trace()
    finally:
        internals.forget_trace(trace)
    return True


def _wait(job: Job, before: Mapping[str, int], began: float) -> tuple[int, str | None]:
    """Waits for the steps; how many were made, and calls of which function they were."""
    wanted, limit = job.values["steps"], job.values["seconds"]
    if limit is None:
        limit = MOST_SECONDS if before else UNCOUNTED_SECONDS
    while True:
        made, function = _most_made(job, before)
        passed = time.monotonic() - began
        if made >= wanted or passed >= limit:
            return made, function
        pause = max(_LEAST_PAUSE, min(_MOST_PAUSE, passed / (max(made, 1) * _PAUSES_A_STEP), limit - passed))
        if job.stopping.wait(pause):
            return _most_made(job, before)


def _most_made(job: Job, before: Mapping[str, int]) -> tuple[int, str | None]:
    now: Mapping[str, int] = {}
    with guarded("actions.profile.steps"):
        now = steps_made(job.store)
    wanted = job.values["function"]
    made = [(calls - before.get(name, 0), name) for name, calls in now.items() if wanted in (None, name)]
    return max(made, default=(0, None))


def _told(job: Job, made: int, function: str | None, seconds: float, ended_here: bool) -> str:
    wanted = job.values["steps"]
    steps = f"{made} step{'s' * (made != 1)}" + (f" of `{function}`" if function is not None and made else "")
    if not ended_here:
        return f"The program ended the trace itself, after at most {steps}."
    if made >= wanted:
        return f"{steps} in {seconds:.3g} s."
    if function is None:
        return (
            f"{seconds:.3g} s; no step was counted, because no function is instrumented (`jaxobs.jit`, `--instrument`)."
        )
    why = "it was stopped" if job.stopping.is_set() else "its time was up"
    return f"{steps} of {wanted} in {seconds:.3g} s, when {why}."
