"""Steps that a program declares for JAX's profiler by `jax.profiler.StepTraceAnnotation`, as MaxText does."""

from collections.abc import Callable

from jaxobs.instruments.stepping import step
from jaxobs.internals import step_annotations
from jaxobs.sources.support.source import Source
from jaxobs.state.loops import Loops


class StepAnnotations(Source):
    """The source: each block of an annotation is a step of the loop of that name."""

    _undo: Callable[[], None] | None = None

    def start(self) -> None:
        """Begins to watch, if this JAX lets us."""
        self._undo = step_annotations.watch(self._began, _ended)
        self._store.describe(capabilities={"step_annotations": self._undo is not None})

    def stop(self) -> None:
        """Leaves JAX's class as it was."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _begin(self) -> None:
        self._names: set[str] = set()

    def _began(self, name: str) -> step | None:
        """A step, unless the program reports its loops by `jaxobs.step` or `jaxobs.steps` as well."""
        if not self._names.issuperset(self._store.part(Loops).names()):
            return None
        self._names.add(name)
        opened = step(name)
        opened.__enter__()
        return opened


def _ended(opened: step, kind: type[BaseException] | None) -> None:
    opened.__exit__(kind, None, None)


source = StepAnnotations
