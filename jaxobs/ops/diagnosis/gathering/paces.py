"""How the process of a log made its steps, and what it said behind the last of them."""

import re
from dataclasses import dataclass

from jaxobs.ops.diagnosis.gathering.log_times import nearest

_BUSY = re.compile(
    r"[Ee]val|[Vv]alidat|[Ss]av(?:e|ing)|[Cc]heckpoint|[Cc]ompil|[Rr]estor|[Ll]oad|[Uu]pload|[Dd]ownload|[Ss]leep|"
    r"\b[Ii]dle|"
    r"[Tt]est|[Ss]ampl|[Gg]enerat|[Aa]utotun|[Ww]ait|[Ss]ummary|[Ff]inish|[Tt]otal|[Dd]one|[Ee]xit"
)
"""It does something else than steps, or is about to end."""
_PROMPT = re.compile(
    r"(?:\([\w.-]+\) ?)?(?:\[?[\w.-]+@[\w.-]+[: ][^$#>]{0,80}\]?|bash-[\d.]+|root@\w+)[$#] ?\S{0,200}$"
)
"""A shell asks for the next command."""
_OF = re.compile(r"\b(\d{1,12}) ?(?:/|of) ?(\d{1,12})\b")

STEP, BUSY, PROMPT, OTHER = "step", "busy", "prompt", "other"
"""What a process said last: a step; something else that it does; nothing, for a shell follows; anything else."""


@dataclass(slots=True)
class Pace:
    """The steps of one process."""

    count: int = 0
    first: float | None = None
    latest: float | None = None
    """When the last step was made that has a time."""
    pause: float = 0.0
    """The longest time between two steps, in seconds."""
    last: str = OTHER
    skipped: bool = False
    """Whether lines were left out since the last step."""
    is_done: bool = False
    """Whether the last step was the last of those that it was to make."""

    def step(self, text: str, time: float | None) -> None:
        """One more step."""
        self.count += 1
        if time is not None:
            if self.latest is not None and not self.skipped:
                self.pause = max(self.pause, time - self.latest)
            self.first = time if self.first is None else self.first
            self.latest, self.skipped = time, False
        self.last = STEP
        found = _OF.search(text)
        self.is_done = found is not None and int(found.group(1)) >= int(found.group(2))

    def line(self, text: str) -> None:
        """A line that is no step."""
        if _PROMPT.match(text):
            self.last = PROMPT
        elif self.last != BUSY and text.strip():
            self.last = BUSY if _BUSY.search(text) else OTHER

    def told(
        self, end: float | None, written: float | None, now: float | None, *, yearless: bool = False
    ) -> dict[str, str]:
        """As data of the last line of the process, in seconds before it.

        Args:
          end: when the process said its last line.
          yearless: whether the year of `end` is a guess.
          written: when the file was written last.
          now: when it is read.
        """
        figures: dict[str, float] = {"steps": self.count, "pause": self.pause}
        if end is not None and self.latest is not None and yearless:
            end = nearest(end, self.latest)
        if end is not None and self.latest is not None and self.first is not None:
            figures |= {"since_first_step": end - self.first, "since_last_step": end - self.latest}
        if end is not None and written is not None and now is not None:
            figures |= {"written_after": written - end, "age": now - written}
        said = {name: f"{value:.3f}" for name, value in figures.items()}
        return {**said, "said_last": "done" if self.is_done and self.last in (STEP, PROMPT) else self.last}


_MEMORY = re.compile(
    r"(?i)\b(?:rss|resident(?: memory)?|max_?rss|(?:host|cpu|ram|process)?[ _-]?mem(?:ory)?(?:[ _](?:usage|used))?|ram)"
    r"\b[\"']?[ :=~]{1,4}(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>[KMGT])i?B?\b"
)
"""Memory that a program logs of itself."""
_NOT_USED = re.compile(r"(?i)\b(?:request\w*|limit\w*|total|free|avail\w*|max\w*)\W{0,3}$")
"""Before a figure of memory: it is no memory in use."""
_WORDS = ("rss", "RSS", "mem", "Mem", "MEM", "ram", "RAM", "resident", "Resident")
"""A line with such a figure has one of these, which is sooner seen than the figure."""
_UNITS = "KMGT"
_LEAST_READINGS, _LEAST_RISE = 4, 1.5
"""Readings that show a rise, and the last one as a multiple of the first."""


@dataclass(slots=True)
class Memory:
    """Memory that a process logs, for as long as each reading is above the one before."""

    first: float = 0.0
    """In KiB, as are all."""
    latest: float = 0.0
    count: int = 0
    fell: bool = False

    def read(self, text: str) -> bool:
        """Takes in a line; returns whether it has a reading."""
        found = _MEMORY.search(text) if any(each in text for each in _WORDS) else None
        if found is None or _NOT_USED.search(text[: found.start()]):
            return False
        value = float(found["number"]) * 1024.0 ** _UNITS.index(found["unit"].upper())
        self.fell |= value < self.latest
        self.first = self.first or value
        self.count, self.latest = self.count + 1, value
        return True

    def rose(self) -> str:
        """Returns how it rose; "" if it did not, or fell in between."""
        if self.fell or self.count < _LEAST_READINGS or self.latest < _LEAST_RISE * self.first:
            return ""
        return f"[rose from {self.first / 1024:.0f} MiB in {self.count} readings]"
