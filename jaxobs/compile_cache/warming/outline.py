"""A recorded signature as the log alone tells it: whether it is whole, its arguments in short, what it lacks.

Nothing is imported for it, neither the program nor JAX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxobs.reasons.recorded import MOST_DEPTH, MOST_LEAVES, VERSION

MOST_TOLD = 3
MOST_TEXT = 200
_MOST_SIZE = 2**63


class DamagedError(ValueError):
    """A recorded signature is of another version, or damaged."""


def check(recorded: Mapping[str, Any]) -> None:
    """Raises `DamagedError` if a signature is not whole, or of a size that cannot have been written."""
    if recorded.get("version") != VERSION:
        raise DamagedError(
            f"it has version {recorded.get('version')!r:.20}, but this jaxobs reads version {VERSION}. Record it again."
        )
    if not isinstance(recorded.get("shardings"), list) or not isinstance(recorded.get("options", {}), Mapping):
        raise _damaged("its shardings or options")
    _roots(recorded, _Nodes(recorded))


def _roots(recorded: Mapping[str, Any], nodes: _Nodes) -> tuple[list[int], dict[str, int]]:
    args, kwargs = recorded.get("args"), recorded.get("kwargs")
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise _damaged("its arguments")
    if sum(nodes.leaves(each) for each in (*args, *kwargs.values())) > MOST_LEAVES:
        raise _damaged(f"more than {MOST_LEAVES:,} arrays")
    return args, kwargs


class _Nodes:
    """The nodes of a signature: each refers to earlier ones only, so that none is its own part."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self.all: Any = recorded.get("nodes")
        if not isinstance(self.all, list):
            raise _damaged("no nodes")
        self._counts: list[int] = []
        depths: list[int] = []
        for number, node in enumerate(self.all):
            children = self.children(number)
            if not all(type(each) is int and 0 <= each < number for each in children):
                raise _damaged(f"node {number}")
            if "shape" in node and not _is_array(node):
                raise _damaged(f"node {number}")
            leaf = "shape" in node or "static" in node
            self._counts.append(min(MOST_LEAVES + 1, leaf + sum(self._counts[each] for each in children)))
            depths.append(1 + max((depths[each] for each in children), default=0))
        if max(depths, default=0) > MOST_DEPTH + 2:
            raise _damaged("its depth")

    def children(self, number: int) -> Sequence[int]:
        node = self.all[number]
        if not isinstance(node, dict):
            raise _damaged(f"node {number}")
        found: Any = next((node[name] for name in ("dict", "tuple", "list", "children") if name in node), [])
        if not isinstance(found, list | dict) or isinstance(found, dict) != ("dict" in node):
            raise _damaged(f"node {number}")
        return list(found.values()) if isinstance(found, dict) else found

    def leaves(self, number: Any) -> int:
        """Returns how many arrays and static arguments are in a node."""
        if type(number) is not int or not 0 <= number < len(self._counts):
            raise _damaged(f"node {number!r:.20}")
        return self._counts[number]


def _is_array(node: Mapping[str, Any]) -> bool:
    shape = node["shape"]
    return (
        isinstance(shape, list)
        and all(type(size) is int and 0 <= size < _MOST_SIZE for size in shape)
        and isinstance(node.get("dtype"), str)
        and isinstance(node.get("weak_type", False), bool)
    )


def _damaged(what: str) -> DamagedError:
    return DamagedError(f"it is damaged, or of another version of jaxobs ({what})")


# ------------------------------------------------------------------------------------------- for a person


def describe(recorded: Mapping[str, Any]) -> str:
    """Returns the arguments in short, as `({26 arrays}, {float32[64,64]}, train=True)`; raises as `check`."""
    nodes = _Nodes(recorded)
    args, kwargs = _roots(recorded, nodes)
    parts = [_told(nodes, each) for each in args] + [f"{name}={_told(nodes, each)}" for name, each in kwargs.items()]
    text = f"({', '.join(parts)})"
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 2]}…)"


def _told(nodes: _Nodes, number: int) -> str:
    node = nodes.all[number]
    if "shape" in node or "static" in node:
        return _leaf(node)
    if nodes.leaves(number) > MOST_TOLD:
        kind = next((name for name in ("dict", "tuple", "list") if name in node), str(node.get("node")))
        return f"{kind.rpartition('.')[2].rpartition(':')[2]} of {nodes.leaves(number):,} arrays"
    return f"{{{', '.join(_leaves(nodes, number))}}}"


def _leaves(nodes: _Nodes, number: int) -> list[str]:
    node = nodes.all[number]
    if "shape" in node or "static" in node:
        return [_leaf(node)]
    return [text for child in nodes.children(number) if nodes.leaves(child) for text in _leaves(nodes, child)]


def _leaf(node: Mapping[str, Any]) -> str:
    if "shape" in node:
        return f"{node['dtype']:.40}[{','.join(map(str, node['shape']))}]"
    value = node["static"]
    return repr(value) if value is None or isinstance(value, bool | int) else "static"


def lacks(recorded: Mapping[str, Any]) -> str | None:
    """Returns a sentence on what the log could not hold of the arguments, if anything; raises as `check`."""
    nodes = _Nodes(recorded)
    args, kwargs = _roots(recorded, nodes)
    for name, root in (*((f"{place}", each) for place, each in enumerate(args)), *kwargs.items()):
        seen, open_ = set[int](), [root]
        while open_:
            if (number := open_.pop()) in seen:
                continue
            seen.add(number)
            if (why := _why(nodes.all[number])) is not None:
                return f"argument `{name}`: {why}"
            open_ += reversed(nodes.children(number))
    return None


def _why(node: Mapping[str, Any]) -> str | None:
    kind = node.get("node")
    if isinstance(kind, dict):
        return f"the type `{kind.get('opaque')!s:.120}` cannot be found by its name"
    if isinstance(kind, str) and kind.startswith("flax.nnx."):
        return (
            "`nnx.jit` took a module apart, and only the parts were recorded. Call jaxobs.warmup in "
            "the program with the arguments themselves"
        )
    for name in ("static", "metadata"):
        if (opaque := _opaque(node.get(name))) is not None:
            of = f"in the metadata of `{str(kind).replace(':', '.'):.120}`, " if name == "metadata" else ""
            return f"{of}{opaque:.200} was not recorded: it is not a plain value, and no module has it"
    return None


def _opaque(written: Any) -> str | None:
    """Returns the first mark of something that was not written down."""
    left = [written]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if "opaque" in each:
                return str(each["opaque"])
            left += reversed(each.values())
        elif isinstance(each, list):
            left += reversed(each)
    return None
