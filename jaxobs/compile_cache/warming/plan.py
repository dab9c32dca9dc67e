"""Plans the warm-up of an event log outside the program that wrote it: which functions and signatures, and why not."""

import fnmatch
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxobs.base.errors import SettingError
from jaxobs.base.json_lines import Damage
from jaxobs.compile_cache.warming import finding, outline, records
from jaxobs.compile_cache.warming.compiling import Signature, Task, Warmed, compile_ahead, recorded_task
from jaxobs.compile_cache.warming.finding import Finder, NotFoundError
from jaxobs.compile_cache.warming.rebuilding import OpaqueError
from jaxobs.compile_cache.warming.records import Recorded

MOST_HINTS = 3


@dataclass(slots=True)
class Item:
    """A recorded signature, and its result."""

    recorded: Recorded
    task: Task | None = None
    text: str = ""
    """The arguments in short, once they are known."""
    cache: str | None = None
    """Result of the persistent cache; None if it was in this process's memory, or nothing was compiled."""
    seconds: float = 0.0
    dry: bool = False
    """True if it was looked at in the log only."""
    why_not: str | None = None
    advice: str | None = None

    @property
    def function(self) -> str:
        """As the log names it."""
        return self.recorded.function


@dataclass(slots=True)
class Plan:
    """The signatures that an event log asks for."""

    log: Path
    items: list[Item] = field(default_factory=list)
    without: Mapping[str, int] = field(default_factory=dict)
    """Compilations whose signature was not recorded, by function."""
    damage: Damage = field(default_factory=Damage)
    """Lines of the log that cannot be read."""


def use_cache(directory: str | None) -> str:
    """Has JAX store every program in its persistent cache; returns the directory.

    Raises:
      SettingError: no directory is given and none set, or the cache is switched off.
    """
    import jax

    if directory is not None:
        # As it is given: before JAX 0.11 this very text is part of the keys.
        jax.config.update("jax_compilation_cache_dir", directory)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if not jax.config.jax_enable_compilation_cache:
        raise SettingError("The persistent cache is off: jax_enable_compilation_cache is False. Turn it on.")
    found = jax.config.jax_compilation_cache_dir
    if not found:
        raise SettingError(
            "There is no cache to warm. Use --cache-dir DIR, or set JAX_COMPILATION_CACHE_DIR: the "
            "directory that production uses."
        )
    return str(found)


def make(
    log: Path, names: Sequence[str], modules: Sequence[str], script: str | None, makers: Mapping[str, str]
) -> Plan:
    """Reads the log, and finds its functions in the modules and the script that are named.

    Args:
      names: of the functions wanted, whole or without the module, or with `*`; none for all.
      modules, script: what is imported; nothing else is.
      makers: by the name of a function, what makes example arguments of it: `[MODULE:]MAKER`.

    Raises:
      SettingError: the log cannot be read, a name is not in it, nothing is named to find the functions in, or that
        cannot be imported.
    """
    plan, found = _wanted_of(log, names, makers)
    if not modules and script is None:
        raise SettingError(_name_it(found))
    _search_beside(script)
    finder, examples = Finder(modules, script), dict[str, Any]()
    for recorded in found:
        plan.items += _items(recorded, finder, makers, examples, log)
    return plan


def outlined(log: Path, names: Sequence[str], makers: Mapping[str, str]) -> Plan:
    """Returns the plan as far as the log alone tells, and imports no program; raises `SettingError`."""
    plan, found = _wanted_of(log, names, makers)
    for recorded in found:
        item = Item(recorded, dry=True)
        plan.items.append(item)
        signature = recorded.signature
        item.why_not = finding.why_unreachable(str(signature.get("module")), str(signature.get("qualname")))
        try:
            item.text = outline.describe(signature)
            outline.check(signature)
            example = any(_wanted(recorded.function, [function]) for function in makers)
            if item.why_not is None and not example:
                item.why_not = outline.lacks(signature)
                item.advice = None if item.why_not is None else _like(recorded.function, log)
        except outline.DamagedError as error:
            item.why_not = str(error)
    return plan


def _wanted_of(log: Path, names: Sequence[str], makers: Mapping[str, str]) -> tuple[Plan, list[Recorded]]:
    found = records.read(log)
    _check_names([*names, *makers], [*(each.function for each in found.recorded), *found.without])
    plan = Plan(log, damage=found.damage)
    plan.without = {name: count for name, count in found.without.items() if _wanted(name, names)}
    return plan, [each for each in found.recorded if _wanted(each.function, names)]


def _name_it(recorded: Sequence[Recorded]) -> str:
    """Returns the error for no `--script` and no `--module`, with those that the log knows."""
    started = {each.signature.get("started"): None for each in recorded}
    modules = {each.signature.get("module"): None for each in recorded}
    hints = [
        f"--module {shlex.quote(each[3:])}" if each.startswith("-m ") else f"--script {shlex.quote(each)}"
        for each in started
        if isinstance(each, str)
    ] or [f"--module {shlex.quote(each)}" for each in modules if isinstance(each, str) and each != "__main__"]
    told = f" According to the log: {' or '.join(hints[:MOST_HINTS]):.300}, if you trust it." if hints else ""
    return (
        "Name the program that has the functions, with --script FILE or --module MODULE: it is imported, and a log "
        f"must not decide what is.{told} `--dry-run` lists what the log asks for and imports nothing."
    )


def _search_beside(script: str | None) -> None:
    """Has modules imported from the current directory, and from next to the script."""
    beside = [] if script is None else [os.path.dirname(os.path.abspath(script))]
    if not sys.flags.safe_path:
        sys.path[:0] = [each for each in dict.fromkeys((*beside, os.getcwd())) if each not in sys.path]


def _check_names(wanted: Sequence[str], known: Sequence[str]) -> None:
    for entry in wanted:
        if not any(_wanted(name, [entry]) for name in known):
            listed = ", ".join(sorted(set(known))) or "none"
            raise SettingError(f"The log has no compilation of `{entry}`. It has: {listed:.1000}.")


def _wanted(name: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(
        fnmatch.fnmatchcase(name, each) or fnmatch.fnmatchcase(name, f"*.{each}") for each in wanted
    )


def _items(
    recorded: Recorded, finder: Finder, makers: Mapping[str, str], examples: dict[str, Any], log: Path
) -> list[Item]:
    name = recorded.function
    platform, here = recorded.signature.get("platform"), _platform()
    if platform is not None and platform != here:
        return [
            Item(
                recorded,
                why_not=f"it was compiled for `{platform}`, but this machine runs on `{here}`",
                advice="Run this on a machine with the same devices as production.",
            )
        ]
    qualname = str(recorded.signature.get("qualname", name)).rpartition(".")[2]
    try:
        functions = finder.find(recorded.signature)
        maker = next((maker for function, maker in makers.items() if _wanted(name, [function])), None)
        like = None if maker is None else _example(maker, finder.main, examples)
    except NotFoundError as error:
        advice = f'In the program, once the function exists: jaxobs.warmup({qualname}, "{log.name}")'
        return [Item(recorded, why_not=str(error), advice=advice)]
    return [
        Item(recorded, recorded_task(each, name, recorded.signature, like, finder.program(each))) for each in functions
    ]


def _platform() -> str:
    import jax

    return str(jax.default_backend())


def _example(maker: str, main: str, made: dict[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Example arguments by `[MODULE:]MAKER`, made once."""
    if maker not in made:
        module, _, name = maker.rpartition(":")
        try:
            made[maker] = _call(module or main, name)
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            raise SettingError(f"`--like` names {maker!r}, which failed: {type(error).__name__}: {text}") from error
    example = made[maker]
    if isinstance(example, Signature):
        return example.args, example.kwargs
    return (example if type(example) is tuple else (example,)), {}


def _call(module: str, name: str) -> Any:
    import importlib

    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found()


# --------------------------------------------------------------------------------------------- carrying out


def carry_out(plan: Plan, parallel: int | None, done: Callable[[Item], object]) -> None:
    """Compiles what can be compiled, and reports each item when it is done."""
    for item in plan.items:
        if item.task is None:
            done(item)
    items = [item for item in plan.items if item.task is not None]
    tasks = [item.task for item in items if item.task is not None]

    def progress(number: int, warmed: Warmed) -> None:
        _take(items[number], warmed, plan.log)
        done(items[number])

    compile_ahead(tasks, parallel, progress)


def _take(item: Item, warmed: Warmed, log: Path) -> None:
    item.text, item.cache, item.seconds, item.why_not = warmed.signature, warmed.cache, warmed.seconds, warmed.error
    if isinstance(warmed.exception, OpaqueError):
        item.advice = _like(item.function, log)
    elif warmed.unsaved is not None:
        item.why_not = f"it was compiled, but the cache does not have it: {warmed.unsaved}"


def _like(function: str, log: Path) -> str:
    name = function.rpartition(".")[2]
    return (
        f"Use --like {name}=MAKER, a function of the module that returns example arguments; or, in the program: "
        f'jaxobs.warmup({name}, "{log.name}", like=(...))'
    )
