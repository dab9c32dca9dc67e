"""Looks at the program's thread, by its stack every few milliseconds, while a sample of the devices' time is taken.

A trace says what JAX and XLA do on the host, and nothing of the program's own Python.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from time import perf_counter
from types import FrameType

from jaxobs.facts.profile_samples import HostPlace
from jaxobs.internals.source_files import is_jax, user_line
from jaxobs.internals.transfers import waits_for_array
from jaxobs.loops.positions import calls, iterates
from jaxobs.profiles.idle import Gap
from jaxobs.profiles.intervals import Interval

MOST_PLACES = 5
MOST_FRAMES = 64
MOST_DEEP = 4
"""Innermost frames among which the one that waits for an array is looked for."""
MOST_SECONDS = 0.02
"""A look stands for at most so long, before and after it."""
WAITS = "waits"
"""Reason of a wait for the devices, by a method that leaves no frame: they are not idle because of that."""
_MOVES = frozenset(("device_put", "device_get", "_value", "__array__", "batched_device_put", "_device_put_impl"))
"""Functions of JAX that move arrays between host and devices."""
_OF_CATEGORY = {"input_wait": "input", "transfer": "transfer"}


class HostLooks:
    """The looks of one sample."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, str, str]] = []
        """Looks: the time, what the thread was doing, and at which line of the user's."""

    def look(self, frame: FrameType | None, category: str | None) -> None:
        """Takes in the thread's innermost `frame`, without keeping it, and the category of the scope that it is in."""
        if frame is None:
            return
        doing = _OF_CATEGORY.get(category or "") or _doing(frame)
        self._looks.append((perf_counter(), doing, user_line(frame) or ""))

    def __len__(self) -> int:
        return len(self._looks)

    def places(self, gaps: Iterable[Sequence[Gap]], at_zero: float) -> tuple[HostPlace, ...]:
        """Returns where the thread was in idle `gaps`, in nanoseconds of a clock that was zero at `at_zero`."""
        found: Counter[tuple[str, str]] = Counter()
        devices = 0
        for gap in gaps:
            devices += 1
            starts = [start for start, _, _ in gap]
            for when, _, where in self._looks:
                moment = (when - at_zero) * 1e9
                at = bisect_right(starts, moment) - 1
                if where and at >= 0 and moment < gap[at][1]:
                    found[where, gap[at][2]] += 1
        looks = len(self._looks) * devices
        return tuple(
            HostPlace(where=where, reason=reason, share=count / looks)
            for (where, reason), count in found.most_common(MOST_PLACES)
        )

    def spans(self, at_zero: float) -> dict[str, list[Interval]]:
        """Yields when the thread did what idles devices, in nanoseconds of a clock at zero at `at_zero`."""
        found: dict[str, list[Interval]] = {}
        times = [when for when, _, _ in self._looks]
        for number, (when, doing, _) in enumerate(self._looks):
            if doing == "other":
                continue
            before = when - times[number - 1] if number else MOST_SECONDS
            after = times[number + 1] - when if number + 1 < len(times) else MOST_SECONDS
            start, end = when - min(before / 2, MOST_SECONDS), when + min(after / 2, MOST_SECONDS)
            found.setdefault(doing, []).append(((start - at_zero) * 1e9, (end - at_zero) * 1e9))
        return found


def _doing(frame: FrameType) -> str:
    each: FrameType | None = frame
    for depth in range(MOST_FRAMES):
        if each is None:
            break
        code = each.f_code
        if not depth and calls(code, each.f_lasti, "block_until_ready"):
            return WAITS
        if (depth < MOST_DEEP and waits_for_array(code)) or (code.co_name in _MOVES and is_jax(code.co_filename)):
            return "transfer"
        if code.co_name == "__next__" or iterates(code, each.f_lasti):
            return "input"
        each = each.f_back
    return "other"
