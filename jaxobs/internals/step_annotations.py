"""`jax.profiler.StepTraceAnnotation`: the steps that a program declares for JAX's profiler.

The class is Python's, its base the profiler's, whose `__enter__` and `__exit__` say nobody. Watching adds `__new__`,
`__enter__` and `__exit__` to the class, which has none of its own, and takes them away again: nothing of JAX's is
replaced, no function that is compiled is touched, and no frame stays on the stack while the block runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jaxobs.base.guard import guarded

Began = Callable[[str], Any]
"""Called with the annotation's name as its block begins; what it returns is handed to `Ended`."""
Ended = Callable[[Any, "type[BaseException] | None"], None]
"""Called as the block ends, with the type of the exception that leaves it, if any."""

_NAME, _OPEN = "_jaxobs_name", "_jaxobs_open"


def watch(began: Began, ended: Ended) -> Callable[[], None] | None:
    """Reports every block from now on; returns what ends that, or None where this JAX has no such class."""
    try:
        from jax.profiler import StepTraceAnnotation as Annotation
    except ImportError:
        return None
    added = ("__new__", "__enter__", "__exit__")
    if vars(Annotation).keys() & set(added):
        return None  # another one watches, or a release did this differently
    make, enter, leave = Annotation.__new__, Annotation.__enter__, Annotation.__exit__

    @functools.wraps(Annotation.__init__)
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        made = make(cls, *args, **kwargs)
        with guarded("step_annotations"):
            name = args[0] if args else kwargs.get("name")
            if isinstance(name, str):
                setattr(made, _NAME, name)
        return made

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:  # noqa: N807
        entered = enter(self)
        with guarded("step_annotations"):
            name = getattr(self, _NAME, None)
            if name is not None:
                setattr(self, _OPEN, began(name))
        return entered

    @functools.wraps(leave)
    def __exit__(self: Any, kind: Any, error: Any, traceback: Any) -> Any:  # noqa: N807
        with guarded("step_annotations"):
            opened = self.__dict__.pop(_OPEN, None)
            if opened is not None:
                ended(opened, kind)
        return leave(self, kind, error, traceback)

    for name, method in zip(added, (__new__, __enter__, __exit__), strict=True):
        setattr(Annotation, name, method)

    def undo() -> None:
        for name, method in zip(added, (__new__, __enter__, __exit__), strict=True):
            if getattr(Annotation, name) is method:
                delattr(Annotation, name)

    return undo
