"""Two directories that `--xla_dump_to` wrote: which programs differ, and where each begins to."""

import contextlib
import re
from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path

from jaxobs.base.errors import JaxobsError
from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, listed, ok

STAGES = ("before_optimizations", "after_optimizations")
_NAME = re.compile(
    r"module_\d+\.(?P<module>.+?)\.(?:(?:sm_\d+\.\d+_)?\w+_)?(?P<stage>before_optimizations|after_optimizations)\.txt"
)
_NOISE = re.compile(
    r",? ?(metadata|stack_frame_id|frontend_attributes|backend_config)=(\{(?:[^{}]|\{[^{}]*\})*\}|\"[^\"]*\"|\d+)"
)
"""Pattern of source lines, paths and choices of the autotuner, which are not a computation."""
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
"""Blocks of the text that say where in the source a computation comes from."""
MOST_BYTES = 48 * 2**20
MOST_FILES = 100_000
MOST_LISTED = 20
DEFAULT = "its default"


def is_dump(folder: Path) -> bool:
    """Returns whether a folder has a program in XLA's text."""
    with contextlib.suppress(OSError):
        return any(_NAME.fullmatch(path.name) for path in islice(folder.iterdir(), MOST_FILES))
    return False


def compare(before: Path, after: Path) -> Iterator[Finding]:
    """Yields a finding for each program that one of them lacks, or that differs.

    Programs of one name are compared in the order in which they were compiled.

    Raises:
      JaxobsError: one of them is no such directory.
    """
    a, b = programs(before), programs(after)
    only = {"A": [each for each in a if each not in b], "B": [each for each in b if each not in a]}
    for side, names in only.items():
        if names:
            number = "1 program is" if len(names) == 1 else f"{len(names)} programs are"
            yield Finding(
                id="xla-dump", severity="warning", title=f"{number} in {side} alone",
                entity=str(before if side == "A" else after), evidence=listed([name for name, _ in names], 10),
                why="Processes that compile different programs hang in collectives, or compute wrong numbers.",
                fix="Look for data, configuration or a branch by process index that differs",
            )  # fmt: skip
    differing = 0
    for name in [each for each in a if each in b]:
        stage, line = _difference(a[name], b[name])
        if stage is None:
            continue
        differing += 1
        if differing <= MOST_LISTED:
            yield Finding(
                id="xla-dump", severity="warning" if stage == STAGES[0] else "info",
                title=f"{name[0]} differs {'as JAX lowered it' if stage == STAGES[0] else 'as XLA compiled it only'}",
                entity=name[0], evidence=line,
                why="Another computation: shapes, constants, shardings or options differ."
                if stage == STAGES[0] else "The same computation, compiled differently: flags, version or autotuning.",
                fix=f"diff {shell.word(str(a[name][stage]))} {shell.word(str(b[name][stage]))}",
            )  # fmt: skip
    if differing > MOST_LISTED:
        yield Finding(
            id="xla-dump", severity="info", title=f"{differing - MOST_LISTED} more programs differ", entity=str(after),
            evidence=f"{differing} of {len(a)}",
        )  # fmt: skip
    yield from _flags(before, after)
    if not differing and not any(only.values()):
        yield ok(f"All {len(a)} programs are the same", f"{before}, {after}").of("xla-dump")


def _flags(before: Path, after: Path) -> Iterator[Finding]:
    """Yields what XLA was reported, besides the programs: it writes its flags next to each."""
    a, b = flags(before), flags(after)
    names = [each for each in sorted({*a, *b}) if a.get(each) != b.get(each)] if a and b else []
    if names:
        yield Finding(
            id="xla-dump", severity="info",
            title="One flag of XLA differs" if len(names) == 1 else f"{len(names)} flags of XLA differ",
            entity="XLA_FLAGS",
            evidence=listed([f"{name}: {a.get(name, DEFAULT)} -> {b.get(name, DEFAULT)}"[:160] for name in names], 10),
            why="Processes of one job need equal flags, and each set of flags has its own entries in the persistent "
            "cache.",
            fix="Give both the same XLA_FLAGS, and the same version of jaxlib",
        )  # fmt: skip


def flags(folder: Path) -> dict[str, str]:
    """Returns the flags of the first program, by name; none where they were not written."""
    path = min(folder.glob("module_*.debug_options"), default=None)
    if path is None:
        return {}
    found: dict[str, str] = {}
    for line in _lines(path):
        name, _, value = line.partition(":")
        if name.startswith("xla_") and not name.startswith("xla_dump"):
            # A list has a line for each of its values.
            found[name] = f"{found[name]}, {value.strip()}" if name in found else value.strip()
    return found


def programs(folder: Path) -> dict[tuple[str, int], dict[str, Path]]:
    """Returns the files of each program by stage, by its name and its number among those of that name."""
    try:
        names = sorted(
            islice(folder.iterdir(), MOST_FILES), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)[:1]]
        )
    except OSError as error:
        raise JaxobsError(f"`{folder}` cannot be read: {error.strerror or error}.") from None
    modules: dict[str, dict[str, dict[str, Path]]] = {}
    for path in names:
        matched = _NAME.fullmatch(path.name)
        if matched and path.is_file():
            number = path.name.partition(".")[0]
            modules.setdefault(matched["module"], {}).setdefault(number, {})[matched["stage"]] = path
    if not modules:
        raise JaxobsError(
            f"`{folder}` has no programs of XLA: it is not what XLA_FLAGS=--xla_dump_to={folder} writes "
            "(`module_0001.jit_step.cpu_after_optimizations.txt` and the like)."
        )
    return {
        (module, place): files
        for module, numbers in modules.items()
        for place, files in enumerate(numbers.values())
    }  # fmt: skip


def _difference(a: dict[str, Path], b: dict[str, Path]) -> tuple[str | None, str]:
    """Returns the first stage at which they differ, and the first line."""
    for stage in STAGES:
        if stage not in a or stage not in b:
            continue
        for number, (one, other) in enumerate(zip_longest(_lines(a[stage]), _lines(b[stage]), fillvalue=""), 1):
            if one != other:
                return stage, f"line {number}: {one.strip()[:160]!r} -> {other.strip()[:160]!r}"
    return None, ""


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise JaxobsError(f"`{path}` cannot be read: {error.strerror or error}.") from None
    blocks = [each for each in text.split("\n\n") if not each.lstrip().startswith(_TABLES)]
    return [_NOISE.sub("", line) for each in blocks for line in each.splitlines()]
