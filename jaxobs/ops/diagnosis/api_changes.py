"""Names of the API of JAX, and of libraries beside it, that some releases have and others have not.

Whoever misses one of these names runs code that was written for another release; other names are misspelt.
"""

import re
import tomllib
from importlib import resources

_CHANGES = tomllib.loads((resources.files(__package__) / "api_changes.toml").read_text(encoding="utf-8"))
_NAMES, _MODULES, _OPTIONS = _CHANGES["names"], _CHANGES["modules"], _CHANGES["options"]
_OF_ARRAYS, _ARGUMENTS = _CHANGES["attributes_of_arrays"], _CHANGES["arguments"]
_ARRAYS = r"(?:[\w.]+\.)?(?:ArrayImpl|DeviceArray|PRNGKeyArray|\w+Tracer)"
_INTERNAL = r"jax\._src[\w.]*|jaxlib[\w.]*|jax\.lib[\w.]*|jax\.interpreters\.[\w.]+"
"""Modules that promise nothing: they change with every release."""


def _one_of(words: str) -> str:
    return f"(?:{'|'.join(map(re.escape, words.split()))})"


_IS_INSTALLED = r"(?: \((?:unknown location|[^)]*(?:site|dist)-packages[^)]*)\)|\W*$)"
"""Python names the file, which may be one of the program with the library's name."""


def _missing() -> str:
    ways = [
        rf"(?:module '{re.escape(module)}' has no attribute '{_one_of(names)}'|"
        rf"cannot import name '{_one_of(names)}' from '{re.escape(module)}'{_IS_INSTALLED})"
        for module, names in _NAMES.items()
    ]
    ways += [
        rf"module '(?:{_INTERNAL})' has no attribute '\w+'(?!.*Did you mean)",
        rf"cannot import name '\w+' from '(?:{_INTERNAL})'{_IS_INSTALLED}",
        r"module 'jax[\w.]*' has no attribute '_\w+'(?!.*Did you mean)",
        rf"No module named '(?:{_INTERNAL}|{_one_of(_CHANGES['modules'])}(?:\.\w+)*)'",
        rf"(?:'Config' object has no attribute|Unrecognized config option:) '?jax_{_one_of(_CHANGES['options'])}\b",
        rf"'{_ARRAYS}' object has no attribute '{_one_of(_CHANGES['attributes_of_arrays'])}'",
    ]
    ways += [
        rf"\b{function}\(\) got an unexpected keyword argument '{_one_of(names)}'"
        for function, names in _ARGUMENTS.items()
    ]
    # A file of the program with the library's name has none of the library's names.
    other = "(?!.*(?:partially initialized|consider renaming))"
    return rf"^(?:Attribute|Import|ModuleNotFound|Type)Error: {other}.{{0,200}}?(?:{'|'.join(ways)})"


MISSING = _missing()
"""A regular expression of what Python says of them."""
_RELEASES = {
    which: {name: release for release, names in _CHANGES[which].items() for name in names.split()}
    for which in ("gone", "came")
}
_MISSED = re.compile(
    r"module '([\w.]+)' has no attribute '(\w+)'|cannot import name '(\w+)' from '([\w.]+)'|No module named '([\w.]+)'"
)


def distribution(module: str) -> str:
    """Returns the name under which pip knows a package or a module; some packages have modules of several."""
    package, table = module.split(".")[0], _CHANGES["distributions"]
    return str(table.get(".".join(module.split(".")[:2])) or table.get(package, package))


def releases(message: str) -> dict[str, str]:
    """Returns the first releases of JAX with (`came`) and without (`gone`) the name that a message misses."""
    if (found := _MISSED.search(message)) is None:
        return {}
    of, name, imported, source, module = found.groups(default="")
    missed = module or f"{of or source}.{name or imported}"
    when = {which: table[missed] for which, table in _RELEASES.items() if missed in table}
    return {"name": missed} | when if when else {}
