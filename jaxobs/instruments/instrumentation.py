"""Instruments functions that are known by name only: `MODULE:FUNCTION`, as a flag or a variable gives them.

A module's function is replaced when the module has been imported. The main script is never imported and runs as it is
read; so a statement that instruments is compiled into it, behind whatever binds the function's name, also inside
functions that declare the name `global`.
"""

import ast
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any, TypeGuard

from jaxobs.base.errors import SettingError, did_you_mean
from jaxobs.base.guard import guard, guarded
from jaxobs.base.import_hooks import when_imported
from jaxobs.instruments.wrapper import instrument

_MAIN = "__main__"
_LISTED = 12


@dataclass
class _Target:
    """A function to instrument, and what became of it."""

    module: str
    path: tuple[str, ...]
    is_main: bool = False
    done: bool = False
    trouble: str | None = None

    @property
    def name(self) -> str:
        return f"{self.module}:{'.'.join(self.path)}"


_targets: dict[str, _Target] = {}


def instrument_when_imported(spec: str) -> None:
    """Instruments `MODULE:FUNCTION`, as in `train:Trainer.step`, once imported; raises `SettingError`."""
    target = _target(spec)
    if target.module != _MAIN or _attribute(sys.modules.get(_MAIN), target.path[0]) is not None:
        when_imported(target.module, partial(_instrument, target))


def main_compiler(specs: Iterable[str], names: Collection[str]) -> Callable[[bytes, str], CodeType] | None:
    """A `compile` for the main script that instruments what `specs` ask of the modules called `names`.

    Returns:
      None when nothing is asked of them.

    Raises:
      SettingError: a spec is not of the form `MODULE:FUNCTION`.
    """
    targets = [target for target in map(_target, specs) if target.module in {_MAIN, *names}]
    for target in targets:
        target.is_main = True
    return partial(_compile_main, targets) if targets else None


def unmet() -> list[str]:
    """A sentence for each function asked for that was never instrumented: why, and what there is instead."""
    return [_why_not(target) for target in _targets.values() if not target.done]


def _target(spec: str) -> _Target:
    module, _, function = spec.partition(":")
    path = tuple(function.split("."))
    if not all(part.isidentifier() for part in (*module.split("."), *path)):
        raise SettingError(
            f"`instrument` is {spec!r}, which is not of the form MODULE:FUNCTION, "
            "such as train:train_step, train:Trainer.step or __main__:train_step."
        )
    return _targets.setdefault(spec, _Target(module, path))


# ------------------------------------------------------------------------------------------------- replacing


def _instrument(target: _Target, module: str | None = None) -> None:
    """Puts the instrumented function in its place, now or as soon as JAX is there: never is JAX imported for it."""
    when_imported("jax", partial(_replace, target, module or target.module))


@guard("instrumentation")
def _replace(target: _Target, module: str) -> None:
    *outer, name = target.path
    owner: Any = sys.modules[module]
    for part in outer:
        owner = getattr(owner, part, None)
    found = _attribute(owner, name)
    if found is None:
        return
    target.trouble = None
    if isinstance(found, type):
        target.trouble = f"it is a class. Name a method, such as {target.name}.__call__"
        return
    wrapped = _instrumented(found)
    if wrapped is None:
        target.trouble = f"it is not a function but {type(found).__qualname__}"
        return
    if wrapped is not found:
        try:
            setattr(owner, name, wrapped)
        except (AttributeError, TypeError) as error:
            target.trouble = f"it cannot be replaced ({error})"
            return
    target.done = True


def _attribute(owner: Any, name: str) -> Any:
    """Returns the object stored under the name, not what a descriptor makes of it."""
    if isinstance(owner, type):
        return next((vars(each)[name] for each in owner.__mro__ if name in vars(each)), None)
    return getattr(owner, name, None)


def _instrumented(found: Any) -> Any:
    if isinstance(found, staticmethod | classmethod):
        inner = instrument(found.__func__)
        return found if inner is found.__func__ else type(found)(inner)
    return instrument(found) if callable(found) else None


# --------------------------------------------------------------------------------------------- the main script


def _compile_main(targets: Sequence[_Target], source: bytes, path: str) -> CodeType:
    tree = ast.parse(source, path)
    calls: dict[str, Callable[[], None]] = {}
    with guarded("instrumentation.transform"):
        for target in targets:
            marker = f"jaxobs instruments {target.name}"
            calls[marker] = partial(_instrument, target, _MAIN)
            name = target.path[0]
            scopes = [each for each in ast.walk(tree) if _binds_globally(each, name)]
            if scopes or any(name in _bound(statement) for statement in tree.body):
                _call_after_bindings(tree.body, name, marker)
                for scope in scopes:
                    _call_after_bindings(scope.body, name, marker)
            else:
                # It may come by `exec`, `globals()` or `import *`: it is looked for as the script goes on.
                for statement in tree.body[_first_statement(tree.body) :]:
                    _call_behind(statement, tree.body, marker)
    code = compile(tree, path, "exec", dont_inherit=True)
    with guarded("instrumentation.constants"):
        return _calling(code, calls)
    return compile(source, path, "exec", dont_inherit=True)


def _calling(code: CodeType, calls: Mapping[str, Callable[[], None]]) -> CodeType:
    """The code with the calls in it: they call constants, so that no name of ours is in the script's way."""
    constants = tuple(_called(each, calls) for each in code.co_consts)
    changed = any(new is not old for new, old in zip(constants, code.co_consts, strict=True))
    return code.replace(co_consts=constants) if changed else code


def _called(constant: Any, calls: Mapping[str, Callable[[], None]]) -> Any:
    if isinstance(constant, CodeType):
        return _calling(constant, calls)
    return calls.get(constant, constant) if isinstance(constant, str) else constant


def _binds_globally(node: ast.AST, name: str) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Returns whether it is a function with `global NAME` that binds the name."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    declared = any(isinstance(each, ast.Global) and name in each.names for each in _own_nodes(node))
    return declared and any(name in _bound(statement) for statement in node.body)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes in a function that are not in one inside it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (*_SCOPES, ast.Lambda)):
            yield from _own_nodes(child)


def _call_after_bindings(block: list[ast.stmt], name: str, marker: str) -> None:
    """Adds a call behind the last statement of the block that binds the name, and so in each block inside it.

    Behind the last one only: of `def step` and `step = jax.jit(step)` the second is the one that gets called.
    """
    binding = [statement for statement in block if name in _bound(statement)]
    for statement in binding:
        for inner in _blocks(statement):
            _call_after_bindings(inner, name, marker)
    if binding:
        _call_behind(binding[-1], block, marker)


def _first_statement(block: list[ast.stmt]) -> int:
    """Behind the docstring and `from __future__`, which have to come first."""
    last = max((i for i, each in enumerate(block) if getattr(each, "module", None) == "__future__"), default=-1)
    docstring = bool(block) and isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
    return max(last + 1, int(docstring))


def _call_behind(statement: ast.stmt, block: list[ast.stmt], marker: str) -> None:
    call = ast.Attribute(ast.Constant(marker), "__call__", ast.Load())
    added = ast.Expr(ast.Call(call, [], []))
    line, column = statement.end_lineno or statement.lineno, statement.end_col_offset or 0
    for node in ast.walk(added):
        node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
        node.col_offset = node.end_col_offset = column  # type: ignore[attr-defined]
    block.insert(block.index(statement) + 1, added)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds in the scope it is in."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, _SCOPES):
        yield node.name
    if not isinstance(node, (*_SCOPES, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _bound(child)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, _SCOPES):
        return
    for holder in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for part in ("body", "orelse", "finalbody"):
            if block := getattr(holder, part, None):
                yield block


# ------------------------------------------------------------------------------------------------- reporting


def _why_not(target: _Target) -> str:
    start = f"`{target.name}` was not instrumented:"
    if target.trouble:
        return f"{start} {target.trouble}."
    module = sys.modules.get(_MAIN if target.is_main else target.module)
    if module is None:
        return f"{start} module `{target.module}` was never imported. Name the module that the program imports."
    if "jax" not in sys.modules:
        return f"{start} the program never imported JAX."
    *outer, _ = target.path
    owner: Any = module
    for part in outer:
        owner = getattr(owner, part, None)
    place = ".".join((_MAIN if target.is_main else target.module, *outer))
    if _attribute(owner, target.path[-1]) is not None:
        return f"{start} it was bound after the last check. Call `jaxobs.instrument` on it where it is defined."
    return f"{start} `{place}` has no function `{target.path[-1]}`. {_listed(owner, module.__name__, target.path[-1])}"


def _listed(owner: Any, module: str, wanted: str) -> str:
    """The functions that could have been named, those of the place itself before what it imported."""
    found: Mapping[str, Any] = getattr(owner, "__dict__", {})
    names = [name for name, value in found.items() if not name.startswith("_") and _is_function(value)]
    own = [name for name in names if getattr(found[name], "__module__", module) == module] or names
    if not own:
        return "It has no functions."
    more = f" and {len(own) - _LISTED} more" if len(own) > _LISTED else ""
    return f"{did_you_mean(wanted, own)}It has: {', '.join(own[:_LISTED])}{more}."


def _is_function(value: Any) -> bool:
    return isinstance(value, staticmethod | classmethod) or (callable(value) and not isinstance(value, type))
