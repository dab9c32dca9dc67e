"""Spots: where a thread was when the clock looked, with what the stack says of it. Each stack is read once."""

import itertools
import os
import re
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from jaxobs.internals.source_files import is_jax, is_plumbing, line_of, runs_programs, shown, works
from jaxobs.internals.transfers import waits_for_array
from jaxobs.loops import call_places, positions
from jaxobs.loops.call_places import MOST_FRAMES, Place, frames
from jaxobs.loops.seen import Seen

MOST_SPOTS = 1024
MOST_CALLS = 16
MOST_DEEP = 4
"""Innermost frames among which the one that waits for an array is looked for."""
READS = 0.01
"""Part of the looks at a line in JAX in which it reads an array, so that what it dispatches is part of the reading."""
WAITS = 2 / 3
"""Part of the looks at a line in which it waits for a device, so that it does when the array has just arrived, too: on
a busy machine both threads go on when the device is done."""
FEWEST_PARAMETERS = 8
"""A gradient from JAX costs a few evaluations; differences cost one for each parameter."""
_SAVES = re.compile(r"_*(save|dump$|dump_|write_(array|checkpoint)|to_(csv|hdf|npz|parquet|pickle)|tofile|fsync)")
"""Names of functions that write data into files, as of NumPy, `pickle`, h5py, pandas, safetensors and users."""
_NO_FRAME = frozenset(("dump", "fsync", "tofile"))
"""Functions of these that are written in C, so that the stack has their call alone."""
_SCIPY = os.path.join("scipy", "optimize", "_")
_DIFFERENCES = {"_dense_difference": None, "leastsq": "_lmdif"}
"""Functions of SciPy that take finite differences, and the one that they call for it, if it is not Python."""


@dataclass(slots=True, eq=False)
class Spot:
    """A stack, by its instructions."""

    place: Place
    line: str
    """`file:line` of the innermost line of the user's, or else of a library's; empty if there is none."""
    in_jax: bool
    """Whether the thread is in JAX."""
    reads: bool
    """Whether the thread waits for an array, or copies it to the host."""
    waits: bool
    """Whether the thread waits for an array, and copies nothing."""
    at: tuple[int, int]
    """The innermost instruction outside of JAX that the thread is at, by the number of its code."""
    code: CodeType | None = None
    """The function, or module, that has the line."""
    runs: bool = False
    """Whether the thread is at an instruction that waits for nothing, and where other threads interrupt it."""
    pauses: CodeType | None = None
    """The innermost code, if it calls `sleep`."""
    sends: bool = False
    """Whether the thread sends an array to a device."""
    saves: int = 0
    """Number of frames from the outermost to the innermost function that saves data into a file; 0 if none does."""
    called_back: bool = False
    """Whether a compiled program has called Python back, as by `jax.pure_callback`."""
    locks: bool = False
    """Whether the thread takes a lock, as in a `with`."""
    answers: bool = False
    """Whether the thread answers a request of a service."""
    works: bool = False
    """Whether the thread is in code that works, of the user's or a library's, and neither takes a lock nor sleeps."""
    differences: str = ""
    """The user's line that has SciPy estimate derivatives by finite differences; empty if none does."""
    _positions: dict[int, tuple[Place, str | None]] = field(default_factory=dict)

    def is_saving(self, call: Place) -> bool:
        """Returns whether the thread saves data, within a function that the loop of this call calls, or behind it."""
        return self.saves > 0 and self.saves > positions.shared(self.place, call) + 1

    def position(self, call: Place) -> str | None:
        """See `positions.position`."""
        if id(call) not in self._positions:
            if len(self._positions) >= MOST_CALLS:
                self._positions.clear()
            self._positions[id(call)] = call, positions.position(self.place, call)
        return self._positions[id(call)][1]


@dataclass(frozen=True, slots=True)
class Glance:
    """The threads as a look sees them at once, before they go on."""

    spots: Mapping[int, Spot]
    """Spot of each thread."""
    awaits: Collection[int]
    """Threads that wait for an array which is being computed."""
    called_back: Spot | None
    """The spot of Python that a compiled program has called on a thread of its own."""
    computing: Sequence[Seen]
    """Functions of which the devices computed a call."""
    others: Sequence[Spot]
    """Spots of threads of a service, some of which may answer requests."""


@dataclass(slots=True)
class Look:
    """A look at a thread."""

    when: float
    seconds: float
    """Seconds at rest that it stands for."""
    spot: Spot
    computes: bool
    """Whether a device computed."""
    runs: bool
    latest: Seen | None
    """The function that was called last."""
    called: float
    """The moment of that call."""
    computing: Sequence[Seen]
    """Functions of which the devices computed a call."""

    @property
    def steps(self) -> bool:
        """Whether the devices computed steps."""
        return any(each.category == "step" for each in self.computing)


@dataclass(slots=True)
class InJax:
    """The looks at a line in JAX."""

    looks: int = 0
    waits: int = 0
    """Looks in which it read an array that was being computed, ..."""
    reads: int = 0
    """... and in which it read one that was there."""
    dispatched: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds of dispatching, by the category that they counted as."""

    @property
    def is_waiting(self) -> bool:
        return self.waits > WAITS * self.looks

    @property
    def is_reading(self) -> bool:
        return self.reads > READS * self.looks and not self.is_waiting


class Spots:
    """The spots that were seen lately."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Spot] = {}

    def of(self, frame: FrameType) -> Spot:
        """Returns the spot of a thread, given its innermost frame, to which no reference is kept."""
        key: list[int] = []
        each: FrameType | None = frame
        while each is not None and len(key) < 2 * MOST_FRAMES:
            key += (id(each.f_code), each.f_lasti)
            each = each.f_back
        found = self._known.get(tuple(key))
        if found is None:
            if len(self._known) >= MOST_SPOTS:
                self._known.clear()  # with the code that the numbers stand for
            found = self._known[tuple(key)] = _read(frame)
        return found

    def pausing(self, codes: Collection[CodeType]) -> dict[str, bool]:
        """Returns the lines of the user's that keep a pace, and whether each calls `sleep` for a difference.

        Args:
          codes: those of a loop; a function that they call may read input slowly if it sleeps for anything else.
        """
        pausing = {each.line: each.place[0] for each in self._known.copy().values() if each.pauses is not None}
        paced = {line: positions.takes_difference(*at) for line, at in pausing.items()}
        return {
            line: paced[line]
            for line, (code, _) in pausing.items()
            if code in codes or (paced[line] and not is_plumbing(code.co_filename))
        }

    def line_with_most(self, seconds: Mapping[str, float]) -> str:
        """Returns the line with the most seconds in the function with the most, given the seconds of each line."""
        functions = {each.line: each.code for each in self._known.copy().values()}
        of_function: defaultdict[object, float] = defaultdict(float)
        for line, spent in seconds.items():
            of_function[functions.get(line, line)] += spent
        return max(seconds, key=lambda line: (of_function[functions.get(line, line)], seconds[line]))

    def locking(self) -> set[str]:
        """Returns the lines that take a lock."""
        return {each.line for each in self._known.copy().values() if each.locks}


def _read(frame: FrameType) -> Spot:
    place = call_places.place(frame)
    (line, function), sleeps = _line(place), positions.calls(*place[0], "sleep")
    locks = positions.locks(place)
    waits = positions.calls(*place[0], "block_until_ready") or place[0][0].co_name == "block_until_ready"
    return Spot(
        place=place,
        line=line,
        code=function,
        in_jax=_in_jax(place),
        reads=waits or any(waits_for_array(code) for code, _ in place[:MOST_DEEP]),
        waits=waits,
        at=next(((id(code), at) for code, at in place if not is_jax(code.co_filename)), (0, 0)),
        runs=positions.interrupted(*place[0]),
        pauses=place[0][0] if sleeps else None,
        sends=any("device_put" in code.co_name and is_jax(code.co_filename) for code, _ in place),
        saves=_saves(place),
        called_back=any(calls_back(code) for code, _ in place),
        locks=locks,
        answers=call_places.answers(frame),
        works=line != "" and not (sleeps or locks) and works(place[0][0].co_filename),
        differences=_differences(frame, place),
    )


def _line(place: Place) -> tuple[str, CodeType | None]:
    outside = [line for line in place if not runs_programs(line[0].co_filename)]
    users = next((line for line in outside if not is_plumbing(line[0].co_filename)), outside[0] if outside else None)
    return ("", None) if users is None else (f"{shown(users[0].co_filename)}:{line_of(*users)}", users[0])


def _in_jax(place: Place) -> bool:
    """Returns whether the innermost code that is neither Python's own nor generated is JAX's."""
    files = (code.co_filename for code, _ in place)
    return any(map(is_jax, itertools.takewhile(runs_programs, files)))


def _saves(place: Place) -> int:
    for depth, (code, at) in enumerate(place):
        if any(positions.calls(code, at, name) for name in _NO_FRAME.intersection(code.co_names)):
            return len(place) - depth + 1
        if _SAVES.match(code.co_name):
            return len(place) - depth
    return 0


def _differences(frame: FrameType, place: Place) -> str:
    for depth, (each, (code, at)) in enumerate(zip(frames(frame), place, strict=False)):
        if code.co_name in _DIFFERENCES and _SCIPY in code.co_filename:
            by = _DIFFERENCES[code.co_name]
            many = len(each.f_locals.get("x0", ())) >= FEWEST_PARAMETERS
            return _line(place[depth:])[0] if many and (by is None or positions.calls(code, at, by)) else ""
    return ""


def calls_back(code: CodeType) -> bool:
    """Returns whether code is that by which a compiled program calls Python."""
    return code.co_name == "_wrapped_callback" and is_jax(code.co_filename)


def outermost(frame: FrameType) -> FrameType:
    """Returns the frame with which a thread began."""
    return deque(frames(frame), 1)[0]


def awaited(frame: FrameType) -> Any:
    """Returns the array that a thread reads, given its innermost frame; None if the stack does not tell."""
    found = (each.f_locals.get("self") for each in frames(frame, MOST_DEEP) if waits_for_array(each.f_code))
    return next(found, None)
