"""Cases of the corpus, and how they are judged: by jaxobs, by JAX's own explainer, and by an independent count.

A case is a generator. What it does before its `yield` is how things stood; what it does afterwards compiles once more
for exactly one reason, or not at all. The truth about whether something compiled comes from the function through which
every executable passes, not from JAX's events.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import jax

import jaxobs
from benchmarks.corpus import truth
from jaxobs.facts.compilations import Compilation
from jaxobs.state import store

Body = Callable[[], Iterator[None]]


@dataclass(frozen=True)
class Case:
    """Cause, shown in one way of compiling."""

    name: str
    way: str
    cause: str | None
    """None where nothing may compile."""
    body: Body
    paths: tuple[str, ...] = ()
    """Paths that must be among the changes, which may list no others of that cause."""
    says: tuple[str, ...] = ()
    """Texts that must be in the reason."""
    devices: int = 1
    """Devices that it needs."""
    needs: Callable[[], bool] = lambda: True
    """Returns whether this JAX has what the case shows."""
    times: int = 1
    only: bool = False
    """Whether nothing else may be among the changes, because they are told against the nearest earlier signature."""
    known_to_explainer: bool = field(default=True)

    @property
    def id(self) -> str:
        return f"{self.way}: {self.name}"


cases: list[Case] = []


def case(
    way: str, cause: str | None, *paths: str, says: tuple[str, ...] | str = (), devices: int = 1,
    needs: Callable[[], bool] = lambda: True, times: int = 1, only: bool = False,
) -> Callable[[Body], Body]:  # fmt: skip
    """Adds a generator to the corpus under its own name."""

    def add(body: Body) -> Body:
        texts = (says,) if isinstance(says, str) else says
        name = body.__name__.strip("_").replace("_", " ")
        cases.append(Case(name, way, cause, body, paths, texts, devices, needs, times, only))
        return body

    return add


@dataclass
class Verdict:
    """Verdict on a case."""

    id: str
    way: str
    name: str
    cause: str | None
    found: list[str]
    """Causes that jaxobs told."""
    reasons: list[str]
    compiled: int
    """Executables that the second half really brought."""
    explainer: str
    """`right`, `wrong` or `silent`."""
    explained: str
    """Log of the explainer."""
    problems: list[str]


_TYPES = r"different input types"
_MESH = r"now \S*?(\(\{.*?\}\)) and before \S*?(?!\1)\(\{"
"""Meshes of a type, `f32[8]({Auto: ('data',)})`, that differ; types that read alike explain nothing."""
_EXPLAINED = {
    "shape": _TYPES,
    "dtype": _TYPES,
    "weak_type": r"weak_type=",
    "structure": r"different input pytree|different number of args|static args",
    "static_argument": r"static (kw)?args|Static\(",
    "context": r"[Tt]racing context|tracing context",
    "new_function": r"never seen function",
    "sharding": rf"@|[Ss]harding|{_MESH}",
    "placement": rf"committed|[Ss]harding|device|<\w+>\[|{_MESH}",
    "layout": r"[Ll]ayout",
    "jit_options": r"donat|shardings|options",
    "cache_cleared": r"cleared|evicted",
}
"""Words of JAX's explainer, in one release or another, where it names the cause."""

_NAMES = re.compile(r"^.*(CACHE MISS at | defined at |defined on the same line|re-defined repeatedly).*$", re.MULTILINE)
"""Lines that name functions and files: those of the corpus have names that say everything."""


@contextlib.contextmanager
def explainer_listening() -> Iterator[io.StringIO]:
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logger = logging.getLogger("jax")
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    jax.config.update("jax_explain_cache_misses", True)
    try:
        yield heard
    finally:
        jax.config.update("jax_explain_cache_misses", False)
        logger.removeHandler(handler)
        logger.propagate = propagate


def run(each: Case) -> Verdict:
    """Runs one case and judges it."""
    problems: list[str] = []
    heard = ""
    before = after = 0
    events: list[Compilation] = []
    try:
        steps = each.body()
        next(steps)
        truth_before = sum(truth.executables.values())
        before = jaxobs.snapshot().last_sequence
        with explainer_listening() as log:
            with contextlib.suppress(StopIteration):
                next(steps)
                problems.append("the case yields more than once")
            heard = log.getvalue()
        after = sum(truth.executables.values()) - truth_before
        events = [e for e in store.current().events(before, "compilation")[0] if isinstance(e, Compilation)]
    except Exception:
        problems.append(traceback.format_exc(limit=-4))
    told = [e for e in events if e.eager == (each.way == "eager")] if each.cause is not None else events
    wanted = [each.cause] * each.times if each.cause is not None else []
    if after != len(events):
        problems.append(f"{after} executables, {len(events)} events")
    if [e.cause for e in told] != wanted:
        problems.append(f"causes {[e.cause for e in told]}, expected {wanted}")
    for event in told:
        problems += _judge(each, event)
    return Verdict(
        each.id, each.way, each.name, each.cause, [e.cause for e in told], [e.reason for e in told], after,
        _judge_explainer(each, heard), heard.strip(), problems,
    )  # fmt: skip


def _judge(each: Case, event: Compilation) -> Iterator[str]:
    paths = {change.path for change in event.changes if change.what == event.cause}
    if each.paths and paths != set(each.paths):
        yield f"paths {sorted(paths)}, expected {sorted(each.paths)}"
    beside = [change for change in event.changes if change.what != event.cause]
    if each.only and beside:
        yield f"told besides: {beside}"
    for text in each.says:
        if text not in event.reason:
            yield f"the reason lacks {text!r}"
    if event.cause not in ("first_call", "cache_cleared", "new_function") and not event.changes:
        yield "no changes"
    for change in event.changes:
        if change.before == change.after:
            yield f"a change that is none: {change}"


def _judge_explainer(each: Case, heard: str) -> str:
    explained = "TRACING CACHE MISS" in heard
    if each.cause is None:
        return "wrong" if explained else "right"
    said = _NAMES.sub("", heard)
    if each.cause == "first_call":
        return "right" if "never seen function" in said else "silent"
    if not explained or "explanation unavailable" in said:
        return "silent"
    return "right" if re.search(_EXPLAINED[each.cause], said) else "wrong"
