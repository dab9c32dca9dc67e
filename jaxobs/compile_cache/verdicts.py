"""Whether a warm start hit, function by function, from the observations of a cold and a warm run.

Pure: it can be fed with observations made by hand. A program of the warm run that was recompiled is looked up
among the cold run's by its cache key. The same key: it was not stored, and the cold run knows why, or the entry could
not be used. Another key: some part of it differs.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.compile_cache.events import Observation, Program
from jaxobs.facts.compilations import EAGER, KEY_PARTS, UNSAVED

KEY_DIFFERS, GONE, NOT_IN_COLD_RUN = "key_differs", "gone", "not_in_cold_run"
REASONS = (*UNSAVED, KEY_DIFFERS, GONE, NOT_IN_COLD_RUN)
"""Why a program was recompiled."""
EXPECTED_OF_EAGER = ("too_fast", "too_small")
"""Single operations are below the thresholds nearly always; that alone is not a failure."""

HIT, MISSED, UNUSED = "hit", "missed", "unused"
NEAR = 1.25
"""A compile that took less than this times the threshold may fall below it on a faster day."""

ADVICE = {
    "disabled": "Turn the cache on before the first compile, with jax_compilation_cache_dir.",
    "too_fast": "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 also stores fast compiles; if they do "
    "not matter, use `--ignore too_fast`.",
    "too_small": "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=0 also stores small programs.",
    "not_writer": "Only process 0 stores. On GPU and TPU the others hit if they share the directory; "
    "if the key differs by process, as on CPU, fill a cache on each host.",
    "callbacks": "Remove jax.debug.print, pure_callback and checkify from the function, or put them "
    "behind a flag: most versions of JAX do not store programs that call back to Python.",
    "error": "`jaxobs cache inspect` shows which entries are broken, and whether the directory is writable.",
    "unknown": "JAX_EXPLAIN_CACHE_MISSES=1 makes JAX log what it does not store.",
    GONE: "Look for what deletes entries: jax_compilation_cache_max_size, a cleanup job, the program itself.",
    NOT_IN_COLD_RUN: (
        "The program does not do the same in each run; seed it, or fill the cache with `jaxobs cache warm`."
    ),
}
PART_ADVICE = {
    "program": "Something in the traced code differs from process to process: time, a random number, "
    "a pid, an id(), the order of a set. Pass it as an argument, or make it the same.",
    "flags": (
        "XLA_FLAGS, LIBTPU_INIT_ARGS and `--xla...` arguments are part of the key, as text: use the same everywhere."
    ),
    "options": "Compile options differ: compiler_options of jit, or XLA's settings in jax.config. Make them the same.",
    "devices": "The devices or their topology differ: run on the same devices, with the same process layout.",
    "jaxlib": "Two versions of jaxlib: fill a cache for each.",
    "backend": "The runtime's version differs (driver, CUDA, libtpu): fill a cache for each.",
    "compression": "`zstandard` is installed in one environment only: install it in both.",
    "custom_hook": "A hook of the program (cache_key.custom_hook) adds something to the key that differs.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A reason why programs of a function were recompiled."""

    reason: str
    """The reason, one of `REASONS`."""
    count: int
    parts: tuple[str, ...] = ()
    """Parts of the key that differ, of `KEY_PARTS`."""
    detail: str | None = None
    """The latest case as a sentence."""

    @property
    def advice(self) -> str:
        """Advice on this reason."""
        told = [PART_ADVICE[part] for part in self.parts if part in PART_ADVICE]
        return " ".join(told) or ADVICE.get(self.reason, PART_ADVICE["program"])

    def __str__(self) -> str:
        if self.reason != KEY_DIFFERS:
            return self.reason.replace("_", " ") if self.reason not in UNSAVED else self.reason
        return f"the key differs: {', '.join(self.parts) or 'part unknown'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A function in both runs."""

    function: str
    """As in events; `<eager>` for all single operations together."""
    verdict: str
    """`hit`, `missed`, or `unused`: the warm run did not ask for it."""
    cold_compiled: int = 0
    cold_seconds: float = 0.0
    warm_hits: int = 0
    warm_load_seconds: float = 0.0
    warm_compiled: int = 0
    warm_compile_seconds: float = 0.0
    misses: tuple[Miss, ...] = ()
    """Why it was recompiled; the most frequent first."""
    near_threshold: bool = False
    """True if it was stored, but its compile took hardly longer than the threshold."""

    def fails(self, ignored: Iterable[str] = ()) -> bool:
        """Returns whether the warm start is not what it should be."""
        excused = {*ignored, *(EXPECTED_OF_EAGER if self.function == EAGER else ())}
        return any(miss.reason not in excused for miss in self.misses)


def judge(cold: Observation, warm: Observation) -> list[Verdict]:
    """Returns a verdict for each function of the program, those that missed first, and one for all eager operations."""
    by_key = _by_key(cold.programs)
    known = {each.function for each in cold.programs}
    names = dict.fromkeys(_name(each) for each in (*cold.programs, *warm.programs))
    verdicts = [
        _verdict(
            name, [each for each in cold.programs if _name(each) == name],
            [each for each in warm.programs if _name(each) == name], by_key, known,
        )
        for name in names
    ]  # fmt: skip
    return sorted(
        verdicts, key=lambda each: (each.function == EAGER, each.verdict != MISSED, -each.cold_seconds, each.function)
    )


def _name(program: Program) -> str:
    return EAGER if program.eager else program.function


def _by_key(programs: Iterable[Program]) -> dict[str, Program]:
    """Returns the cold run's programs by cache key; one that was stored goes before one that was not."""
    found: dict[str, Program] = {}
    for program in programs:
        if program.key is not None and (program.key not in found or program.uncached_because is None):
            found[program.key] = program
    return found


def _verdict(
    name: str, cold: Sequence[Program], warm: Sequence[Program], by_key: Mapping[str, Program], known: set[str]
) -> Verdict:
    compiled, hits = [each for each in warm if each.cache != "hit"], [each for each in warm if each.cache == "hit"]
    first = [each for each in cold if each.cache != "hit"]
    return Verdict(
        function=name,
        verdict=MISSED if compiled else HIT if hits else UNUSED,
        cold_compiled=len(first),
        cold_seconds=sum(each.seconds for each in first),
        warm_hits=len(hits),
        warm_load_seconds=sum(each.seconds for each in hits),
        warm_compiled=len(compiled),
        warm_compile_seconds=sum(each.seconds for each in compiled),
        misses=_misses([_why(each, by_key, known) for each in compiled]),
        near_threshold=any(_is_near(each) for each in first) and not compiled,
    )


def _is_near(program: Program) -> bool:
    least = program.minimum_seconds or 0.0
    return program.uncached_because is None and program.cache == "miss" and 0 < least <= program.seconds < least * NEAR


def _misses(found: Iterable[Miss]) -> tuple[Miss, ...]:
    found = list(found)
    counts = Counter((each.reason, each.parts) for each in found)
    latest = {(each.reason, each.parts): each.detail for each in found}
    return tuple(
        Miss(reason=reason, parts=parts, count=number, detail=latest[reason, parts])
        for (reason, parts), number in counts.most_common()
    )


def _why(program: Program, by_key: Mapping[str, Program], known: set[str]) -> Miss:
    """Returns why the warm run compiled a program again."""
    if program.cache == "disabled":
        return Miss(reason="disabled", count=1, detail=program.uncached_detail)
    if (before := by_key.get(program.key or "")) is None:
        return _why_not_known(program, known)
    if (because := before.uncached_because) is not None:
        detail = before.uncached_detail or program.uncached_detail
        return Miss(reason=because if because in REASONS else "unknown", count=1, detail=detail)
    if program.uncached_because == "error":
        return Miss(reason="error", count=1, detail=program.uncached_detail)
    return Miss(reason=GONE, count=1, detail=program.reason or "It was stored in the cold run, and its entry is gone.")


def _why_not_known(program: Program, known: set[str]) -> Miss:
    if program.function not in known:
        return Miss(reason=NOT_IN_COLD_RUN, count=1, detail="The cold run did not compile this function.")
    parts = tuple(part for part in program.differs if part in KEY_PARTS)
    return Miss(reason=KEY_DIFFERS, count=1, parts=parts, detail=program.reason)


def foreign_directories(observations: Iterable[Observation], cache: str) -> list[str]:
    """Directories that the program set itself, in place of the fresh one."""
    found = {
        each.directory.removeprefix("file://")
        for observation in observations
        for each in observation.programs
        if each.directory is not None
    }
    return sorted(each for each in found if os.path.realpath(each) != os.path.realpath(cache))
