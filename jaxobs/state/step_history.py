"""The step times of a loop over its whole run, in bounded memory."""

MOST_SPANS = 120
FIRST_SPAN_SECONDS = 0.5
"""Length of a span at the start: 120 spans last for a minute, and each doubling for as long again."""

SpanTimes = tuple[float, float, float]
"""Middle of a span as a Unix time, the mean of its steps' times and the longest, in seconds."""


class StepHistory:
    """Mean and longest step time by spans of one length, which doubles when there are too many spans.

    The caller locks. Times are those of `time.perf_counter`, in seconds.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._length = FIRST_SPAN_SECONDS
        self._spans: dict[int, tuple[int, float, float]] = {}
        """By number: steps, their seconds in all, the longest."""

    def add(self, ended: float, seconds: float, steps: int = 1) -> None:
        """Adds steps that took `seconds` each, the last of which ended at `ended`."""
        if self._began is None:
            self._began = ended
        number = int((ended - self._began) / self._length)
        while number >= MOST_SPANS:
            self._double()
            number = int((ended - self._began) / self._length)
        made, total, longest = self._spans.get(number, (0, 0.0, 0.0))
        self._spans[number] = (made + steps, total + steps * seconds, max(longest, seconds))

    def _double(self) -> None:
        self._length *= 2
        spans: dict[int, tuple[int, float, float]] = {}
        for number, (made, total, longest) in self._spans.items():
            before = spans.get(number // 2, (0, 0.0, 0.0))
            spans[number // 2] = (made + before[0], total + before[1], max(longest, before[2]))
        self._spans = spans

    def frozen(self, to_clock: float) -> tuple[SpanTimes, ...]:
        """Returns the spans that have steps, the oldest first; `to_clock` added to a time makes it a Unix time."""
        began = (self._began or 0.0) + to_clock
        return tuple(
            (round(began + (number + 0.5) * self._length, 2), _short(total / made), _short(longest))
            for number, (made, total, longest) in sorted(self._spans.items())
        )


def _short(seconds: float) -> float:
    return float(f"{seconds:.4g}")
