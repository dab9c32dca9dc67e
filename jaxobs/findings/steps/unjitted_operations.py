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
        if took is None or took.seconds < LEAST_SECONDS:
            continue
        share = took.share / max(1.0 - _compiling(scene), took.share)
        if share < LEAST_SHARE:
            continue
        yield Case(
            function=EAGER,
            severity="warning" if share > LARGE_SHARE or _is_most(took, scene) else "info",
            summary=(
                f"A loop calls operations one by one, outside any jitted function. Dispatching them takes "
                f"{percent(took.share)} of the time since the first turn, above all at {took.line}."
            ),
            advice=(
                "Put the body of the loop into one function under `jax.jit`, with `jax.vmap` and `jax.grad` inside: "
                "the host then dispatches one program for each turn, and XLA fuses the operations. If the body is "
                "under `jax.jit` already, `jax_disable_jit` is on: turn it off."
            ),
            where=took.line,
            seconds=took.seconds,
            evidence=[f"{each.line}: {duration(each.seconds)}" for each in loop.lines if each.category == "step"][:3],
            data={"share": took.share},
        )


def _compiling(scene: Scene) -> float:
    """Returns the share of the time since the first turn that went into compiling."""
    return next((each.rest["compile"] / each.total for each in spans(scene.snapshot) if each.total), 0.0)


def _is_most(took: HostLine, scene: Scene) -> bool:
    """Returns whether devices compute for less than half of the time, and dispatching is the largest other part."""
    whole = spans(scene.snapshot)[:1]
    return any(
        each.share - took.share < LARGE_SHARE * (1.0 - _compiling(scene))
        and took.seconds > max(seconds for name, seconds in each.rest.items() if name != "compile")
        for each in whole
    )
