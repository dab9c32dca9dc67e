"""What to do with an event log outside the program that wrote it: which functions and signatures, and why not."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxobs.errors import JaxobsError, SettingError
from jaxobs.warming import records
from jaxobs.warming.compiling import Signature, Task, Warmed, compile_ahead, recorded_task
from jaxobs.warming.finding import Finder, NotFoundError
from jaxobs.warming.rebuilding import OpaqueError
from jaxobs.warming.records import Recorded
from jaxobs.warming.specs import describe


@dataclass(slots=True)
class Item:
    """One recorded signature, and what became of it."""

    recorded: Recorded
    task: Task | None = None
    text: str = ""
    """The arguments in short, once they are known."""
    cache: str | None = None
    """What the persistent cache did; None where it was in this process's memory, or nothing was compiled."""
    seconds: float = 0.0
    dry: bool = False
    """Whether its arguments were made and nothing was compiled."""
    why_not: str | None = None
    advice: str | None = None

    @property
    def function(self) -> str:
        """As the log names it."""
        return self.recorded.function


@dataclass(slots=True)
class Plan:
    """What an event log asks for."""

    log: Path
    items: list[Item] = field(default_factory=list)
    without: Mapping[str, int] = field(default_factory=dict)
    """Compilations whose signature was not recorded, by function."""
    damaged: int = 0
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
        raise SettingError("The persistent cache is switched off: jax_enable_compilation_cache is False. Switch it on.")
    found = jax.config.jax_compilation_cache_dir
    if not found:
        raise SettingError(
            "There is no cache to warm. Say --cache-dir DIR, or set JAX_COMPILATION_CACHE_DIR: the directory that "
            "production uses."
        )
    return str(found)


def make(log: Path, names: Sequence[str], module: str | None, script: str | None, makers: Mapping[str, str]) -> Plan:
    """Reads the log, and finds the functions in it by importing their modules.

    Args:
      names: of the functions wanted, whole or without the module, or with `*`; none for all.
      module, script: where to look in place of what the log tells.
      makers: by the name of a function, what makes example arguments of it: `[MODULE:]MAKER`.

    Raises:
      SettingError: the log cannot be read, or a name is not in it.
    """
    found = records.read(log)
    _check_names([*names, *makers], [*(each.function for each in found.recorded), *found.without])
    plan = Plan(log, damaged=found.damaged)
    plan.without = {name: count for name, count in found.without.items() if _wanted(name, names)}
    _search_where_it_ran(found.recorded)
    finder, examples = Finder(module, script), dict[str, Any]()
    for recorded in found.recorded:
        if _wanted(recorded.function, names):
            plan.items += _items(recorded, finder, makers, examples, log)
    return plan


def _search_where_it_ran(recorded: Sequence[Recorded]) -> None:
    """Has modules imported from the current directory, and from beside the scripts that were started."""
    scripts = dict.fromkeys(each.signature.get("started") for each in recorded)
    beside = [os.path.dirname(each) for each in scripts if isinstance(each, str) and os.path.isabs(each)]
    if not sys.flags.safe_path:
        sys.path[:0] = [each for each in dict.fromkeys((*beside, os.getcwd())) if each not in sys.path]


def _check_names(wanted: Sequence[str], known: Sequence[str]) -> None:
    for each in wanted:
        if not any(_wanted(name, [each]) for name in known):
            listed = ", ".join(sorted(set(known))) or "none"
            raise SettingError(f"The log has no compilation of `{each}`. It has those of: {listed:.1000}.")


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
                why_not=f"it was compiled for `{platform}`, and this machine runs on `{here}`",
                advice="Run this on a machine with the devices of production.",
            )
        ]
    qualname = str(recorded.signature.get("qualname", name)).rpartition(".")[2]
    try:
        functions, main = finder.find(recorded.signature)
        maker = next((maker for function, maker in makers.items() if _wanted(name, [function])), None)
        like = None if maker is None else _example(maker, main, examples)
    except NotFoundError as error:
        advice = f'In the program, once the function is there: jaxobs.warmup({qualname}, "{log.name}")'
        return [Item(recorded, why_not=str(error), advice=advice)]
    return [Item(recorded, recorded_task(each, name, recorded.signature, like, main)) for each in functions]


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


def carry_out(plan: Plan, parallel: int | None, done: Callable[[Item], object], dry: bool = False) -> None:
    """Compiles what can be compiled, and tells of each item when it is done.

    Args:
      dry: whether to make the arguments only, and to compile nothing.
    """
    for item in plan.items:
        if item.task is None:
            done(item)
    items = [item for item in plan.items if item.task is not None]
    tasks = [item.task for item in items if item.task is not None]

    def progress(number: int, warmed: Warmed) -> None:
        _take(items[number], warmed, plan.log)
        done(items[number])

    if dry:
        for number, task in enumerate(tasks):
            items[number].dry = True
            progress(number, _only_made(task))
    else:
        compile_ahead(tasks, parallel, progress)


def _only_made(task: Task) -> Warmed:
    try:
        made = task.arguments()
    except JaxobsError as error:
        return Warmed(task.function, task.text, error=str(error), exception=error)
    return Warmed(task.function, describe(made.args, made.kwargs))


def _take(item: Item, warmed: Warmed, log: Path) -> None:
    item.text, item.cache, item.seconds, item.why_not = warmed.signature, warmed.cache, warmed.seconds, warmed.error
    name = item.function.rpartition(".")[2]
    if isinstance(warmed.exception, OpaqueError):
        item.advice = (
            f"Say --like {name}=MAKER, a function of the module that returns example arguments; or, in the program: "
            f'jaxobs.warmup({name}, "{log.name}", like=(...))'
        )
    elif warmed.unsaved is not None:
        item.why_not = f"it was compiled, but the cache does not have it: {warmed.unsaved}"
