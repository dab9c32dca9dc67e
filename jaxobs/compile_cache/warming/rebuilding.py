"""Arguments made again of a recorded signature: trees of `jax.ShapeDtypeStruct`, on this machine's devices."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxobs import internals
from jaxobs.base.errors import JaxobsError
from jaxobs.compile_cache.warming import outline
from jaxobs.reasons import known_values
from jaxobs.reasons.known_values import OpaqueValueError, Program
from jaxobs.reasons.recorded import MOST_DEVICES
from jaxobs.reasons.signature import parameter_names


class UnbuildableError(JaxobsError, ValueError):
    """A recorded signature cannot be made again here; the message says which part of it, and why."""


class OpaqueError(UnbuildableError):
    """A static argument or metadata of a pytree was not written down: an example of the arguments has it."""


@dataclass(frozen=True)
class Arguments:
    """Arguments to lower a function for, and the context to do it in."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    scope: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """Puts the recorded options and mesh in force on the thread that lowers."""


def rebuild(
    recorded: Mapping[str, Any],
    fun: Any = None,
    like: tuple[Sequence[Any], Mapping[str, Any]] | None = None,
    program: Program | None = None,
) -> Arguments:
    """Returns a recorded signature's arguments, from `like` what a log lacks; raises `UnbuildableError`."""
    try:
        outline.check(recorded)
        return _Builder(recorded, program or Program(fun=fun)).arguments(fun, like or ((), {}))
    except outline.DamagedError as error:
        raise UnbuildableError(str(error)) from None
    except JaxobsError:
        raise
    except Exception as error:  # JAX refuses what is damaged in many ways; a node's type may run the program's code
        raise UnbuildableError(f"it is damaged, or of another version of jaxobs ({error!r:.120})") from error


class _Builder:
    def __init__(self, recorded: Mapping[str, Any], program: Program) -> None:
        self._recorded = recorded
        self._nodes = recorded["nodes"]
        self._program = program
        self._specs: dict[int, Any] = {}
        self._shardings: dict[int, Any] = {}

    def arguments(self, fun: Any, like: tuple[Sequence[Any], Mapping[str, Any]]) -> Arguments:
        names = parameter_names(fun) if fun is not None else []
        device, mesh = self._recorded.get("default_device"), self._recorded.get("mesh")
        options = self._recorded.get("options", {})
        made_mesh = None if mesh is None else (mesh["entered"], _mesh(mesh))
        made_device = None if device is None else _devices(device["devices"], device["platform"])[0]

        def scope() -> contextlib.AbstractContextManager[None]:
            return internals.scopes.scope(options, made_mesh, made_device)

        with scope():
            args = tuple(
                self._argument(node, names[place] if place < len(names) else f"args[{place}]", like[0], place)
                for place, node in enumerate(self._recorded["args"])
            )
            kwargs = {
                name: self._argument(node, name, like[1], name) for name, node in self._recorded["kwargs"].items()
            }
        return Arguments(args, kwargs, scope)

    def _argument(self, number: int, name: str, examples: Any, place: int | str) -> Any:
        """Rebuilds an argument; `examples` may have one in the same place."""
        from jax import tree_util

        known = place < len(examples) if isinstance(place, int) else place in examples
        example = None
        if known:
            leaves, tree = tree_util.tree_flatten(examples[place])
            example = _Example(tree, leaves, examples[place])
        try:
            return self._built(number, example)
        except OpaqueValueError as error:
            raise OpaqueError(f"argument `{name}`: {error}") from None
        except UnbuildableError as error:
            raise UnbuildableError(f"argument `{name}`: {error}") from None

    def _built(self, number: int, example: _Example | None) -> Any:
        if "static" in self._nodes[number]:
            # As a whole: what is one static argument may be a tree to JAX.
            whole = None if example is None else _Example(None, [example.value], example.value)
            return self._static(self._nodes[number], whole)
        leaves: list[Any] = []
        return self._tree(number, example, leaves).unflatten(leaves)

    def _tree(self, number: int, example: _Example | None, leaves: list[Any]) -> Any:
        """Returns the tree definition of a node; appends to `leaves`."""
        from jax import tree_util

        node = self._nodes[number]
        data: tuple[Any, Any]
        if "none" in node:
            return tree_util.tree_structure(None)
        if "shape" in node or "static" in node:
            leaves.append(self._spec(number) if "shape" in node else self._static(node, example))
            return tree_util.tree_structure(0)
        if "dict" in node:
            data, children = (dict, list(node["dict"])), list(node["dict"].values())
        elif "tuple" in node or "list" in node:
            kind = tuple if "tuple" in node else list
            data, children = (kind, None), node[kind.__name__]
        else:
            data, children = self._data(node, example), node["children"]
        examples = [None] * len(children) if example is None else example.children(data[0], len(children))
        trees = [self._tree(child, each, leaves) for child, each in zip(children, examples, strict=True)]
        return _tree_definition(data, trees)

    def _data(self, node: Mapping[str, Any], example: _Example | None) -> tuple[Any, Any]:
        """Returns the type of a node and its metadata; those of the example for what was not written down."""
        if str(node["node"]).startswith("flax.nnx."):
            raise UnbuildableError(
                "`nnx.jit` took a module apart, and only the parts were recorded. Call jaxobs.warmup "
                "in the program with the arguments themselves"
            )
        data = None if example is None else example.tree.node_data()
        try:
            if not isinstance(node["node"], str):
                raise OpaqueValueError(f"the type `{node['node']['opaque']}` cannot be found by its name")
            kind: Any = self._program.node(node["node"])
        except OpaqueValueError:
            if data is None:
                raise
            kind = data[0]
        try:
            return kind, self._program.read(node.get("metadata"))
        except OpaqueValueError as error:
            if data is not None and data[0] is kind:
                return kind, data[1]
            raise OpaqueValueError(f"in the metadata of `{kind.__module__}.{kind.__qualname__}`, {error}") from None

    def _static(self, node: Mapping[str, Any], example: _Example | None) -> Any:
        try:
            return self._program.read(node["static"])
        except OpaqueValueError:
            if example is None or len(example.leaves) != 1:
                raise
            return example.leaves[0]

    def _spec(self, number: int) -> Any:
        if number not in self._specs:
            import jax

            node = self._nodes[number]
            if "layout" in node:
                raise UnbuildableError(f"its layout, {node['layout']}, is not the default one")
            sharding = self._sharding(node.get("sharding"))
            self._specs[number] = jax.ShapeDtypeStruct(
                tuple(node["shape"]), _dtype(node["dtype"]), sharding=sharding, weak_type=node.get("weak_type", False)
            )
        return self._specs[number]

    def _sharding(self, number: int | None) -> Any:
        if number is None:
            return None
        if number not in self._shardings:
            self._shardings[number] = _sharding(self._recorded["shardings"][number])
        return self._shardings[number]


@dataclass(frozen=True)
class _Example:
    """A part of an example argument: has what a record could not hold."""

    tree: Any
    leaves: Sequence[Any]
    value: Any = None

    def children(self, kind: Any, count: int) -> list[_Example | None]:
        """Returns the parts in the example, if it is a node of that kind with so many."""
        data, trees = self.tree.node_data(), self.tree.children()
        if data is None or data[0] is not kind or len(trees) != count:
            return [None] * count
        parts, start = list[_Example | None](), 0
        for tree in trees:
            parts.append(_Example(tree, self.leaves[start : start + tree.num_leaves]))
            start += tree.num_leaves
        return parts


def _tree_definition(data: tuple[Any, Any], children: Sequence[Any]) -> Any:
    from jax import tree_util

    kind: Any = tree_util.PyTreeDef
    # Its name since JAX 0.7, and the one before.
    make = getattr(kind, "from_node_data_and_children", None) or kind.make_from_node_data_and_children
    try:
        return make(tree_util.default_registry, data, children)
    except ValueError as error:
        raise UnbuildableError(f"`{data[0].__qualname__}` is not a pytree node here ({error})") from None


def _dtype(name: str) -> Any:
    """Returns the data type of an array: NumPy's, one of `ml_dtypes`, or that of a random key."""
    if not name.startswith("key<"):
        return known_values.dtype(name)
    import jax

    for implementation in ("threefry2x32", "rbg", "unsafe_rbg"):
        key = jax.eval_shape(functools.partial(jax.random.key, impl=implementation), 0)
        if str(key.dtype) == name:
            return key.dtype
    raise UnbuildableError(f"there is no kind of random key `{name}` here")


def _sharding(written: Mapping[str, Any]) -> Any:
    from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

    if "opaque" in written:
        raise UnbuildableError(f"it is placed by a `{written['opaque']}`, which cannot be recreated")
    memory = {} if written.get("memory_kind") is None else {"memory_kind": written["memory_kind"]}
    if "mesh" not in written:
        return SingleDeviceSharding(_devices(written["devices"], written["platform"])[0], **memory)
    spec = (tuple(each) if isinstance(each, list) else each for each in written["spec"])
    return NamedSharding(_mesh(written["mesh"]), PartitionSpec(*spec), **memory)


def _mesh(written: Mapping[str, Any]) -> Any:
    import numpy as np
    from jax.sharding import AxisType, Mesh

    names, sizes = zip(*written["axes"], strict=True)
    devices = np.array(_devices(written["devices"], written["platform"])).reshape(sizes)
    return Mesh(devices, names, axis_types=tuple(AxisType[each] for each in written["types"]))


def _devices(runs: Sequence[Sequence[int]], platform: str) -> list[Any]:
    import jax

    if sum(count for _, count in runs) > MOST_DEVICES:
        raise UnbuildableError(f"it was compiled for more than {MOST_DEVICES:,} devices")
    numbers = [number for first, count in runs for number in range(first, first + count)]
    try:
        here = {device.id: device for device in jax.devices(platform)}
    except RuntimeError:
        here = {}
    missing = [number for number in numbers if number not in here]
    if missing:
        raise UnbuildableError(
            f"it was compiled for {len(numbers)} device{'s' * (len(numbers) > 1)} of `{platform}`, but this machine "
            f"has {len(here) or 'none'}: there is no {platform}:{missing[0]}"
        )
    return [here[number] for number in numbers]
