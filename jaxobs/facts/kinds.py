"""All facts, found by this folder: a new one is a class in one of its modules, listed nowhere."""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Mapping

from jaxobs import facts
from jaxobs.facts.events import Event


@functools.cache
def classes() -> Mapping[str, type]:
    """Returns each dataclass of this folder, by its name."""
    modules = [
        importlib.import_module(f"{facts.__name__}.{each.name}") for each in pkgutil.iter_modules(facts.__path__)
    ]
    found = (value for module in modules for value in vars(module).values())
    return {each.__name__: each for each in found if isinstance(each, type) and dataclasses.is_dataclass(each)}


@functools.cache
def event_types() -> Mapping[str, type[Event]]:
    """Returns the classes of events by the field `event` of the log, which is the parameter `kind` of the API."""
    # Not by __subclasses__: a dataclass with slots is made twice, and the first one is listed there as well.
    found = [each for each in classes().values() if issubclass(each, Event) and each.kind]
    return {each.kind: each for each in sorted(found, key=lambda each: each.kind)}
