"""Figures of a run that two runs are compared by, with how far chance moves them. One object for each."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxobs.recorder.oom_texts import human
from jaxobs.views.comparing.runs import LoopFigures, Run
from jaxobs.views.terminal.text import duration

SHARE, RATE = "share", "/s"


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run."""

    name: str
    about: str
    unit: str
    """`s`, `B`, `/s`, `share`, or empty for a number of things."""
    of: Callable[[Run, str | None], float | None]
    """By run and loop; None where the log does not have it."""
    missing: str = ""
    """Sentence on how a run gets this figure into its log."""
    better: str = "less"
    """`less`, `more`, or empty for what is neither good nor bad by itself."""
    noise_share: float = 0.0
    """Share by which it may differ between two runs of the same program."""
    noise_least: float = 0.0
    """Amount, in the measure's unit, below which a difference says nothing."""
    varies: bool = False
    """Whether the steps' own variation is noise as well."""

    @property
    def flag(self) -> str:
        """The name of its tolerance."""
        return f"max-{self.name}-drop" if self.better == "more" else f"max-{self.name}"

    def write(self, value: float | None) -> str:
        """The figure for a person."""
        if value is None:
            return "not logged"
        if self.unit == "s":
            return duration(value)
        if self.unit == "B":
            return human(value)
        if self.unit == SHARE:
            return f"{value:.1%}"
        return f"{value:,.0f}" if self.unit != RATE or value >= 100 else f"{value:.3g}"

    def noise(self, before: Run, after: Run, loops: tuple[str | None, str | None], value: float) -> float:
        """By how much it may differ from `value` by chance."""
        share = self.noise_share
        if self.varies:
            figures = (loop_of(run, name) for run, name in zip((before, after), loops, strict=True))
            share = max(share, sum(each.noise for each in figures if each is not None))
        return max(share * value, self.noise_least)


def loop_of(run: Run, loop: str | None) -> LoopFigures | None:
    """The loop of that name."""
    return run.loops.get(loop) if loop is not None else None


def _of_loop(figure: Callable[[LoopFigures], float | None]) -> Callable[[Run, str | None], float | None]:
    def of(run: Run, loop: str | None) -> float | None:
        found = loop_of(run, loop)
        return None if found is None else figure(found)

    return of


def _steps_a_second(loop: LoopFigures) -> float | None:
    if loop.state is not None and loop.state.steps_per_second:
        return loop.state.steps_per_second
    return 1 / loop.mean if loop.mean else None


def _goodput(run: Run, _: str | None) -> float | None:
    return None if run.wall is None else run.wall.goodput


def _temporaries(run: Run, _: str | None) -> float | None:
    sizes = [each.memory["temp"] for each in run.functions.values() if "temp" in each.memory]
    return max(sizes, default=None)


_STEPS = "Mark the steps with `jaxobs.step` or `jaxobs.steps`, or start the program with `jaxobs run`."

MEASURES = (
    Measure(
        "step-time", "the typical (median) time of a step of the loop", "s", _of_loop(lambda loop: loop.median), _STEPS,
        noise_share=0.05, varies=True,
    ),
    Measure(
        "p95-step-time", "the 95th percentile of the step time", "s",
        _of_loop(lambda loop: loop.p95), f"{_STEPS} This needs 20 steps, and a log that contains the end of the run.",
        noise_share=0.25, varies=True,
    ),
    Measure(
        "mean-step-time", "the mean time of a step, including pauses", "s", _of_loop(lambda loop: loop.mean), _STEPS,
        noise_share=0.1, varies=True,
    ),
    Measure(
        "steps-per-second", "steps of the loop per second", RATE, _of_loop(_steps_a_second), _STEPS, better="more",
        noise_share=0.1, varies=True,
    ),
    Measure(
        "items-per-second", "samples or tokens of the loop per second", RATE,
        _of_loop(lambda loop: loop.items / loop.seconds if loop.items and loop.seconds else None),
        "Pass the items of a step: `jaxobs.step(..., items=n)`.", better="more", noise_share=0.1, varies=True,
    ),
    Measure(
        "goodput", "the share of the process's time that went into steps", SHARE, _goodput, _STEPS, better="more",
        noise_least=0.03,
    ),
    Measure(
        "compile-time", "the time that all functions took to trace, lower, compile and load", "s",
        lambda run, _: sum(each.seconds for each in run.functions.values()), noise_share=0.2, noise_least=0.5,
    ),
    Measure(
        "programs", "the number of programs compiled or loaded", "",
        lambda run, _: sum(each.programs for each in run.functions.values()),
    ),
    Measure(
        "recompilations", "the number of compilations whose cause is not a first call", "",
        lambda run, _: sum(each.programs - each.causes["first_call"] for each in run.functions.values()),
    ),
    Measure(
        "cache-hits", "the number of programs loaded from the persistent cache", "",
        lambda run, _: sum(each.cache["hit"] for each in run.functions.values()), better="",
    ),
    Measure(
        "cache-misses", "the number of programs that the persistent cache did not have", "",
        lambda run, _: sum(each.cache["miss"] for each in run.functions.values()),
    ),
    Measure(
        "memory", "the peak of the allocator on the fullest device", "B",
        lambda run, _: max(run.memory_peak.values(), default=None),
        "Devices are sampled every `sample_interval` and at the end. JAX's CPU backend does not report memory in use; "
        "there, only `live-arrays` is known.", noise_share=0.02, noise_least=2**20,
    ),
    Measure(
        "live-arrays", "the largest sample of the live arrays' bytes on the fullest device", "B",
        lambda run, _: max(run.live_peak.values(), default=None),
        "Live arrays are sampled every `sample_interval` and at the end.", noise_share=0.02, noise_least=2**20,
    ),
    Measure(
        "temporaries", "the temporaries of the largest program", "B", _temporaries,
        "The memory of a program is known if it took a second to compile, and always on "
        "accelerators.", noise_share=0.02,
        noise_least=2**20,
    ),
    Measure("findings", "the number of findings", "", lambda run, _: len(run.findings)),
)  # fmt: skip
