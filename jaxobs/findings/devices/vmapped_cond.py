"""`vmapped_cond`: under `jax.vmap`, a loop's program computes all branches of a `lax.cond` for each element."""

from collections.abc import Iterator

from jaxobs.findings import parts
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration

NAME = "vmapped_cond"
NEEDS = Scene

LEAST_SHARE = 0.5
"""Share of the program's operations that an element which takes the cheapest branch does not need."""
LEAST_TIME = 0.2
"""Share of the time since the first step that these operations take."""
LEAST_SECONDS = 5.0


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case if the loop with most work has such a condition in its largest program.

    Nobody can tell how many elements need the expensive branch, so the summary has an upper bound and the case no
    seconds.
    """
    snapshot, loop = scene.snapshot, next(iter(scene.snapshot.loops), None)
    programs = {each.name: each.program for each in snapshot.functions}
    if loop is None or snapshot.wall is None:
        return
    name = max(loop.calls, key=lambda each: _flops(programs.get(each)), default=loop.name)
    program, total = programs.get(name), parts.total(snapshot)
    if program is None or program.select_share < LEAST_SHARE:
        return
    seconds = program.select_share * snapshot.wall.seconds.get("step", 0.0)
    if seconds < max(LEAST_SECONDS, LEAST_TIME * total):
        return
    most = f" Most of them belong to {program.select_branch}." if program.select_branch else ""
    yield Case(
        function=name, severity="info", where=program.select_site,
        summary=(
            f"`{name}` computes all branches of the condition at {program.select_site} for every element, because "
            f"`jax.vmap` makes a selection of it. An element that takes the cheapest branch does not need "
            f"{parts.percent(program.select_share)} of the operations, which take up to {duration(seconds)} so far, "
            f"{parts.percent(seconds / total)} of the time since the first step.{most}"
        ),
        advice=(
            "If few elements need the expensive branch, compute it for them only: take them out with "
            "`jnp.nonzero(p, size=n)`, and write the results back with `.at[i].set`. `jax.lax.map` instead of "
            "`jax.vmap` runs one branch for each element, one element after the other. If all elements take the "
            "same branch, keep the condition outside of `jax.vmap`. If most elements need that branch, there is "
            "nothing to fix."
        ),
        data={"share": program.select_share, "most_seconds": round(seconds, 3), "branch": program.select_branch},
    )  # fmt: skip


def _flops(program: object) -> float:
    return getattr(program, "all_flops", None) or getattr(program, "flops", None) or 0.0
