"""Differences between two runs: versions, flags, options, devices, and each function's programs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.views.comparing.runs import FunctionFigures, Run

ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that differs between two runs."""

    group: str
    """`versions`, `flags`, `config`, `devices`, `commit`, `host`, `program`."""
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FunctionDifference:
    """A function in both runs; None for the run in which it did not compile."""

    name: str
    before: FunctionFigures | None
    after: FunctionFigures | None

    @property
    def same_programs(self) -> bool | None:
        """Whether both lowered it to the same programs; None where that cannot be said."""
        if self.before is None or self.after is None or not (self.before.fingerprints and self.after.fingerprints):
            return None
        return sorted(self.before.fingerprints) == sorted(self.after.fingerprints)

    @property
    def cost(self) -> float:
        """The larger of its times."""
        return max(each.seconds for each in (self.before, self.after) if each is not None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, A before and B after."""

    before: Run
    after: Run
    differences: tuple[Difference, ...]
    functions: tuple[FunctionDifference, ...]
    """All, the most expensive first."""

    def groups(self) -> set[str]:
        """Returns the groups that differ; `programs` if a function was lowered to other programs."""
        found = {each.group for each in self.differences}
        other = any(each.same_programs is False or None in (each.before, each.after) for each in self.functions)
        return found | ({"programs"} if other else set())


def compare(before: Run, after: Run) -> Comparison:
    """Returns the differences between two runs."""
    names = list(dict.fromkeys([*before.functions, *after.functions]))
    rows = [FunctionDifference(name, before.functions.get(name), after.functions.get(name)) for name in names]
    return Comparison(
        before, after, tuple(_differences(before, after)), tuple(sorted(rows, key=lambda row: (-row.cost, row.name)))
    )


def _differences(before: Run, after: Run) -> Iterator[Difference]:
    a, b = before.manifest, after.manifest
    if a is None or b is None:
        return
    yield from _mappings("versions", a.versions, b.versions)
    yield from _mappings("flags", _without_dumps(a.flags), _without_dumps(b.flags))
    options, others = a.config, b.config
    if a.versions.get("jax") != b.versions.get("jax"):
        both = options.keys() & others.keys()
        alone = len(options) - len(both), len(others) - len(both)
        yield from _values("config", [("options that the other version of JAX does not have", *alone)])
        options, others = ({name: each[name] for name in both} for each in (options, others))
    yield from _mappings("config", options, others)
    # A run that ended before it woke a device has reported none.
    if a.platform is not None and b.platform is not None:
        yield from _values("devices", [("platform", a.platform, b.platform)])
        yield from _mappings("devices", a.devices, b.devices)
        yield from _mappings("devices", _sizes(a.devices_by_process), _sizes(b.devices_by_process))
    yield from _values("devices", [("processes", a.process_count, b.process_count)])
    yield from _values("program", [("program", a.program, b.program)])
    yield from _values("commit", [("commit", a.commit, b.commit)])
    yield from _values("host", [("host", a.hostname, b.hostname)])


def _without_dumps(flags: Mapping[str, str]) -> dict[str, str]:
    """Returns flags without where XLA writes what it compiles, which changes nothing."""
    kept = {
        name: " ".join(each for each in flags[name].split() if not each.startswith("--xla_dump_")) for name in flags
    }
    return {name: value for name, value in kept.items() if value or not flags[name]}


def _sizes(by_process: Mapping[str, int]) -> dict[str, str]:
    """Devices a process; one figure where all have as many."""
    sizes = sorted(set(by_process.values()))
    return {"devices per process": ", ".join(map(str, sizes))} if sizes else {}


def _mappings(group: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    names = sorted({*before, *after})
    yield from _values(group, [(name, before.get(name), after.get(name)) for name in names])


def _values(group: str, rows: Iterable[tuple[str, Any, Any]]) -> Iterator[Difference]:
    for name, before, after in rows:
        if before != after:
            yield Difference(group, name, *(ABSENT if each is None else str(each) for each in (before, after)))
