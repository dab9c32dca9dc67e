"""Hooks on what makes torch_xla compile, run and read: step marks, and methods of `torch.Tensor` that copy to a host.

Each is replaced by a function that calls it and reports that it has returned. What it raises passes with the traceback
that it had. Nobody else's replacement is undone.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType, FunctionType
from typing import Any, cast

from jaxobs.base.guard import guarded
from jaxobs.instruments.tracebacks import leave
from jaxobs.internals.source_files import is_plumbing

MARK, LAUNCH = "_xla_step_marker", "_xla_sync_multi"
READS = ("item", "tolist", "cpu", "to", "__bool__", "__float__", "__int__", "__index__")

CLEARS = ("_clear_xla_counters", "_clear_xla_metrics")
RESTORES = "_xla_increment_counter"
"""`torch.compile` with `openxla` clears the counters while it traces, and puts some back by this."""

Returned = Callable[[str, tuple[Any, ...], float, FrameType], None]
"""Called with the name, the arguments, the seconds that it took, and the frame that called it."""

_MOST_FRAMES = 64


class Hooks:
    """The hooks of one source. `busy` has the threads that are inside."""

    def __init__(self, returned: Returned, clearing: Callable[[], None]) -> None:
        """Calls `clearing` before the program clears counters."""
        self._returned, self._clearing = returned, clearing
        self._placed: list[tuple[Any, str, Any, Any, bool]] = []
        self._on = False
        self.busy: set[int] = set()

    def put(self, native: Any) -> None:
        """Places the hooks. Idempotent."""
        self._on = True
        if self._placed:
            return
        torch: Any = sys.modules["torch"]
        for name in (MARK, LAUNCH, *CLEARS, RESTORES):
            self._place(native, name)
        for name in READS:
            self._place(torch.Tensor, name, (torch.Tensor, torch.nn.Parameter))

    def take_off(self) -> None:
        """Puts back what was there before; where somebody has hooked in after us, ours passes on from now on."""
        self._on = False
        for owner, name, original, hook, own in self._placed:
            if vars(owner).get(name) is hook:
                if own:
                    setattr(owner, name, original)
                else:
                    delattr(owner, name)
        self._placed = []

    def after_fork(self) -> None:
        """In a forked child: no thread is inside."""
        self.busy = set()

    def _place(self, owner: Any, name: str, plain: tuple[type, ...] = ()) -> None:
        """Hooks one function in. `plain` are the types of tensors whose method it is.

        Of subclasses nothing is known: to ask one for its device may run the program's code.
        """
        original = getattr(owner, name, None)
        if original is None:
            return
        clears, sends = name in CLEARS, name == "to"

        @functools.wraps(original)
        def hook(*args: Any, **kwargs: Any) -> Any:
            try:
                if not self._on or (plain and not (args and type(args[0]) in plain and (sends or args[0].is_xla))):
                    return original(*args, **kwargs)
                if clears:
                    self._clearing()
                thread, began = get_ident(), perf_counter()
                self.busy.add(thread)
                try:
                    result = original(*args, **kwargs)
                    if not plain or (type(result) in plain and result.is_xla) is not args[0].is_xla:
                        with guarded("torch_hooks"):
                            self._returned(name, args, perf_counter() - began, sys._getframe(1))
                finally:
                    self.busy.discard(thread)
            except BaseException as error:
                leave(error)
                raise
            return result

        if isinstance(owner, type):
            hook.__module__, hook.__qualname__ = owner.__module__, f"{owner.__qualname__}.{name}"
        with guarded("torch_hooks.dynamo"):
            _leave_to_python(cast("FunctionType", hook).__code__)
        own = name in vars(owner)
        setattr(owner, name, hook)
        self._placed.append((owner, name, original, hook, own))


def _leave_to_python(code: CodeType) -> None:
    """Keeps `torch.compile`, which would warn of what it cannot trace, from a hook and from what it calls."""
    frames: Any = getattr(getattr(sys.modules["torch"]._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Returns the innermost frame of the user's, from this one on outwards."""
    for _ in range(_MOST_FRAMES):
        if frame is None or not is_plumbing(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def shapes(frame: FrameType, most: int = 64) -> dict[str, str]:
    """Returns dtype and shape of the XLA tensors that the frame's variables hold, one level deep in containers."""
    torch: Any = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)
    found: dict[str, str] = {}
    for path, value in _leaves(frame.f_locals, most):
        if type(value) in plain and value.is_xla and len(found) < most:
            found[path] = f"{str(value.dtype).removeprefix('torch.')}[{','.join(map(str, value.shape))}]"
    return found


def _leaves(variables: Mapping[str, Any], most: int) -> Iterator[tuple[str, Any]]:
    for name, value in list(variables.items())[: 8 * most]:
        if type(value) in (list, tuple):
            yield from ((f"{name}[{number}]", each) for number, each in enumerate(value[:most]))
        elif type(value) is dict:
            yield from ((f"{name}[{key!r}]", value[key]) for key in list(value)[:most] if type(key) in (str, int))
        else:
            yield name, value


class Locator:
    """Finds the line that calls an operator which runs on the CPU: looks at the C calls of one step of a thread.

    It is `sys.setprofile`, and nothing where a profiler of the program's is at work.
    """

    MOST_LOOKS, MOST_SECONDS = 8, 2.0

    def __init__(self, count: Callable[[str], int], found: Callable[[str, str], None]) -> None:
        self._count, self._found = count, found
        self._looks = 0
        self._counts: dict[str, int] = {}
        self._until = 0.0

    def look(self, operators: list[str]) -> None:
        """Looks for these on the calling thread until `end`, if nobody else does."""
        if operators and self._looks < self.MOST_LOOKS and sys.getprofile() is None:
            self._looks += 1
            self._until = perf_counter() + self.MOST_SECONDS
            self._counts = {each: self._count(each) for each in operators[:4]}
            sys.setprofile(self._see)

    def end(self) -> None:
        """Looks no more on the calling thread."""
        if sys.getprofile() == self._see:
            sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, called: Any) -> None:
        if event != "c_return":
            return
        with guarded("torch_hooks.locate"):
            for operator, before in list(self._counts.items()):
                now = self._count(operator)
                user = user_frame(frame) if now != before else None
                self._counts[operator] = now
                if user is not None:
                    self._found(operator, f"{user.f_code.co_filename}:{user.f_lineno}")
                    del self._counts[operator]
            if not self._counts or perf_counter() > self._until:
                sys.setprofile(None)
