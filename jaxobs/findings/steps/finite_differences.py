"""`finite_differences`: SciPy estimates derivatives by calls of a JAX function, which JAX would differentiate."""

from collections.abc import Iterator

from jaxobs.facts.compilations import EAGER
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration
from jaxobs.findings.parts import percent
from jaxobs.loops.spots import FEWEST_PARAMETERS as FEWEST_PARAMETERS

NAME = "finite_differences"
NEEDS = Scene

LEAST_SHARE = 0.2
"""Share of the time since the first step."""
LEAST_SECONDS = 5.0


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for the loop whose turns SciPy makes for finite differences, if there is one."""
    for loop in scene.snapshot.loops:
        took = loop.differences
        if took is None or took.share < LEAST_SHARE or took.seconds < LEAST_SECONDS:
            continue
        yield Case(
            function=loop.name, severity="warning",
            summary=(
                f"At {took.line} SciPy estimates derivatives by finite differences: it calls "
                f"{'single operations' if loop.name == EAGER else f'`{loop.name}`'} once more for each parameter. This "
                f"takes {duration(took.seconds)}, {percent(took.share)} of the time since the first step."
            ),
            advice=(
                "Give SciPy the derivative, made once. To `minimize`, pass `jax.jit(jax.value_and_grad(f))` with "
                "`jac=True`: a gradient then costs a few evaluations instead of one for each parameter. To "
                "`least_squares`, `root` and `curve_fit`, pass `jac=jax.jit(jax.jacfwd(f))`, one call for all "
                "parameters. SciPy computes in float64: set `jax_enable_x64`."
            ),
            where=took.line, seconds=took.seconds, data={"share": took.share},
        )  # fmt: skip
