"""The mistakes that the demo makes on purpose: one declaration each, and what jaxobs saw while it was made.

Nothing that jaxobs says about them is written here: the demo quotes the events of its own process.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jaxobs.facts.compilations import Compilation
from jaxobs.state import store


@dataclass(frozen=True, slots=True)
class Trouble:
    """A mistake that makes JAX recompile."""

    name: str
    mistake: str
    """The mistake in the code, in a sentence."""
    cure: str
    """The cure, in a line."""
    function: str
    """The last part of the name of the function that compiles."""
    causes: tuple[str, ...]
    """Causes that jaxobs may give; one of them must occur."""


RAGGED = Trouble(
    "ragged last batch",
    "1,500 digits in batches of 128 leave 92 for the last one.",
    "drop the rest, or pad it to the batch size",
    "train_step",
    ("shape",),
)
EVALUATION = Trouble(
    "evaluation mode left on",
    "model.eval() before a check in the middle of an epoch, and no model.train() after it.",
    "model.train() right after evaluating, in a `finally` or a context manager",
    "train_step",
    ("structure", "static_argument", "unknown"),
)
SCALAR = Trouble(
    "scalar that changes type",
    "rate = 1 if epoch < n else 0.5: a Python int, and a Python float later.",
    "the same type from the start: 1.0 and 0.5",
    "train_step",
    ("dtype",),
)
LAMBDA = Trouble(
    "lambda jitted in a loop",
    "jax.jit(lambda scores: ...)(scores) after each epoch: a new function each time.",
    "create the jitted function once, outside the loop",
    "<lambda>",
    ("new_function",),
)
COLD = Trouble(
    "requests of any size",
    "three requests are served with 5, 9 and 14 images: each size compiles a new program while somebody waits.",
    "pad requests to a few sizes, and compile these before the first request",
    "predict",
    ("shape",),
)
TROUBLES = (RAGGED, EVALUATION, SCALAR, LAMBDA, COLD)


@dataclass(slots=True)
class Seen:
    """Compilations that jaxobs saw while a mistake was made."""

    trouble: Trouble
    compilations: list[Compilation] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds that the mistake cost; a first call would have compiled without it as well."""
        return sum(sum(each.phases.values()) for each in self.again)

    @property
    def again(self) -> list[Compilation]:
        """The compilations that were no first call."""
        return [each for each in self.compilations if each.cause != "first_call"]

    @property
    def causes(self) -> dict[str, int]:
        """How often each cause occurred."""
        return dict(Counter(each.cause for each in self.compilations))

    @property
    def as_expected(self) -> bool:
        """Whether the mistake showed, in the function and with a cause that fit it."""
        return any(
            each.cause in self.trouble.causes and each.function.endswith(self.trouble.function)
            for each in self.compilations
        )


@contextmanager
def watching(trouble: Trouble) -> Iterator[Seen]:
    """Collects the compilations of the block, which run on this thread and are over when it ends."""
    seen = Seen(trouble)
    current = store.current()
    before = current.snapshot().last_sequence
    try:
        yield seen
    finally:
        events, _, _ = current.events(since=before, kind=Compilation.kind)
        seen.compilations += [each for each in events if isinstance(each, Compilation)]
