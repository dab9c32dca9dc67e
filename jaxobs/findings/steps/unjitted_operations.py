"""`unjitted_operations`: a loop calls operations outside any jitted function, and dispatching takes its time."""

from collections.abc import Iterator

from jaxobs.facts.compilations import EAGER
from jaxobs.facts.loops import HostLine
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration
from jaxobs.findings.parts import percent, spans

NAME = "unjitted_operations"
NEEDS = Scene

LEAST_SHARE = 0.2
"""Share of the time since the first turn in which nothing compiled: a short run has compiled for most of its time."""
LARGE_SHARE = 0.5
LEAST_SECONDS = 5.0
PROGRAMS = 4
"""Single operations that compile in a program whose loop also calls jitted functions: a batch that is sent to a device
may compile one or two."""


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for the loop over operations outside of jitted functions, if there is one."""
    programs = sum(each.compiled for each in scene.snapshot.functions if each.name == EAGER)
    for loop in scene.snapshot.loops:
        took = loop.dispatching if loop.name == EAGER or programs >= PROGRAMS else None
        share, most = (0.0, False) if took is None else _weight(took, scene)
        if took is None or took.seconds < LEAST_SECONDS or share < LEAST_SHARE:
            continue
        yield Case(
            function=EAGER,
            severity="warning" if share > LARGE_SHARE or most else "info",
            summary=(
                f"A loop calls operations one by one, outside any jitted function. Dispatching them takes "
                f"{percent(took.share)} of the time since the first turn, above all at {took.line}."
            ),
            advice=(
                "Put the body of the loop into one function under `jax.jit`, with `jax.vmap` and `jax.grad` inside: "
                "the host then dispatches one program for each turn, and XLA fuses the operations. Donate the arrays "
                "that the loop updates (`donate_argnums`): outside `jit`, each `x.at[i].set(y)` copies all of `x`. If "
                "the body is under `jax.jit` already, `jax_disable_jit` is on: turn it off."
            ),
            where=took.line,
            seconds=took.seconds,
            evidence=[f"{each.line}: {duration(each.seconds)}" for each in loop.lines if each.category == "step"][:3],
            data={"share": took.share},
        )


def _weight(took: HostLine, scene: Scene) -> tuple[float, bool]:
    """Returns the share of dispatching in the time in which nothing compiled, and whether it is what to change first.

    It is if devices compute for less than half of that time, and no other part is larger.
    """
    whole = next((each for each in spans(scene.snapshot) if each.total), None)
    if whole is None:
        return took.share, False
    others = [seconds for name, seconds in whole.rest.items() if name != "compile"]
    rest = max(1.0 - whole.rest["compile"] / whole.total, took.share)
    return took.share / rest, (whole.share - took.share) / rest < LARGE_SHARE and took.seconds > max(others)
