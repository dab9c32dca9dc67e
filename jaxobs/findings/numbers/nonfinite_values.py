"""`nonfinite_values`: a watched value, or a scalar that a loop returns, is NaN or infinite."""

from collections.abc import Iterator

from jaxobs.facts.numbers import NonFinite, WatchedState
from jaxobs.findings.cases import Case, Scene

NAME = "nonfinite_values"
NEEDS = Scene

FEW = 0.01
"""A loss that was infinite in a step or two and recovered, as under a loss scale, does not spoil a run."""


def find(scene: Scene) -> Iterator[Case]:
    """A case for each name."""
    first: dict[str, NonFinite] = {}
    for event in scene.nonfinite:
        first.setdefault(event.name, event)
    for state in scene.snapshot.watched:
        known = first.get(state.name)
        if state.nonfinite and (known is None or known.source != "debug_nans"):
            first.pop(state.name, None)
            yield _watched(state, known)
    for event in first.values():
        yield _raised(event) if event.source == "debug_nans" else _from_event(event)


def _watched(state: WatchedState, event: NonFinite | None) -> Case:
    lasting = state.finite is False
    share = state.nonfinite / max(state.checked, 1)
    what = _what(event)
    now = "and still is" if lasting else "and is finite again"
    return Case(
        subject=state.name, severity="critical" if lasting or share > FEW else "warning",
        summary=(
            f"{_named(state.name)} was {what} in {state.nonfinite:,} of {state.checked:,} checked values, "
            f"{now}{_first(event)}."
        ),
        advice=_advice(lasting), where=event.call_site if event is not None else None, count=state.nonfinite,
        since=event.time if event is not None else 0.0, evidence=() if event is None else _evidence(event),
        data={"name": state.name, "checked": state.checked, "step": state.step, "finite": state.finite},
    )  # fmt: skip


def _from_event(event: NonFinite) -> Case:
    """The process ended before it could say how often."""
    return Case(
        subject=event.name, severity="critical", summary=f"{_named(event.name)} became {_what(event)}{_first(event)}.",
        advice=_advice(lasting=True), where=event.call_site, count=1, since=event.time, evidence=_evidence(event),
        data={"name": event.name, "step": event.step},
    )  # fmt: skip


def _raised(event: NonFinite) -> Case:
    return Case(
        subject=event.name, severity="critical",
        summary=f"`jax_debug_nans` stopped the program at `{event.name}`: its result is {_what(event)}.",
        advice=(
            "Check what it computes: a logarithm or square root of 0, a division by 0, an overflow in 16 bits, or a "
            "learning rate that is too high. Turn the option off afterwards: it fetches every output."
        ),
        where=event.call_site, count=1, since=event.time, data={"name": event.name},
    )  # fmt: skip


def _what(event: NonFinite | None) -> str:
    return {"nan": "NaN", "inf": "infinite", "nan and inf": "NaN and infinite"}.get(
        event.what if event is not None else "", "not finite"
    )


def _first(event: NonFinite | None) -> str:
    if event is None or event.step is None:
        return ""
    what = "first" if event.exact else "first seen"
    last = event.last_finite_step
    return f"; {what} at call {event.step:,}" + (
        f"; the last finite one was call {last:,}" if last is not None and not event.exact else ""
    )


def _named(name: str) -> str:
    """`loss`; of a loop's result, `train_step()[1]` and the like, in words."""
    function, call, path = name.partition("()")
    if not call:
        return f"`{name}`"
    return f"`{path}` in the result of `{function}`" if path else f"The result of `{function}`"


def _evidence(event: NonFinite) -> tuple[str, ...]:
    if event.source == "loop":
        return ("jaxobs looks at the scalars that a training loop returns, in some of the steps.",)
    part = f"{event.nans:,} NaN and {event.infs:,} infinite of {event.size:,} elements of `{event.name}{event.path}`"
    kind = f" ({event.dtype})" if event.dtype else ""
    step = f" in step {event.program_step:,}" if event.program_step is not None else ""
    return (f"{part}{kind}{step}.",)


def _advice(lasting: bool) -> str:
    go_back = "Return to a checkpoint from before it. " if lasting else ""
    return (
        f"{go_back}Rerun the steps around it with `jax.config.update('jax_debug_nans', True)`: the error names the "
        "first such operation. Common causes are a learning rate that is too high, a logarithm or division of 0, and "
        "an overflow in 16 bits."
    )
