"""A compilation's signature written down, to compile it ahead elsewhere: shapes and structure, never an array's value.

    {"version": 1, "module": "train", "qualname": "train_step", "platform": "gpu", "options": {...},
     "nodes": [{"shape": [32, 128], "dtype": "float32", "sharding": 0}, {"dict": {"image": 0}}, ...],
     "shardings": [{"mesh": {...}, "spec": ["data", null]}], "args": [3, 1], "kwargs": {}}

Nodes refer to others by number; equal ones are one, so that parameters and the two moments of an optimizer are written
once. `jaxobs.compile_cache.warming` reads it back.
"""

import itertools
import sys
from collections.abc import Hashable, Sequence
from typing import Any

from jaxobs import internals
from jaxobs.base.files import absolute
from jaxobs.reasons import literals, statics
from jaxobs.reasons.naming import unwrapped
from jaxobs.reasons.signature import Leaf, Signature, Static

VERSION = 1
MOST_LEAVES = 20_000
MOST_BYTES = 256 * 1024
"""About as many may the nodes take as JSON."""
_NODE_BYTES, _LEAF_BYTES, _KEY_BYTES, _CHILD_BYTES = 16, 24, 4, 6
MOST_DEPTH = 100
MOST_DEVICES = 65_536


class _UnwritableError(Exception):
    """A signature that cannot be written down, or is too large for it."""


def record(fun: Any, signature: Signature | None, *, values: bool = True) -> dict[str, Any] | None:
    """Returns a compile's signature of `fun` as JSON, or None; `values` allows metadata of pytrees in it."""
    if fun is None or signature is None or len(signature.leaves) > MOST_LEAVES:
        return None
    try:
        return _Writer(signature, values).write(fun)
    except _UnwritableError:
        return None


class _Writer:
    """Numbers the distinct nodes and shardings of one signature."""

    def __init__(self, signature: Signature, values: bool) -> None:
        self._signature = signature
        self._leaves = iter(signature.leaves)
        self._values = values
        self._nodes: list[Any] = []
        self._bytes = 0
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, int] = {}
        self._shardings: list[Any] = []
        self._sharding_numbers: dict[Any, int] = {}

    def write(self, fun: Any) -> dict[str, Any]:
        args, kwargs = self._signature.tree.children()
        numbers = [self._node(child, 0) for child in args.children()]
        names = kwargs.node_data()[1]
        keywords = {name: self._node(child, 0) for name, child in zip(names, kwargs.children(), strict=True)}
        device, mesh = internals.scopes.default_device(), internals.scopes.mesh_in_use()
        body = {
            "version": VERSION,
            **_place(fun),
            "platform": internals.default_platform(),
            "options": internals.scopes.options(),
            "default_device": None if device is None else _devices([device]),
            "mesh": None if mesh is None else {"entered": mesh[0], **_mesh(mesh[1])},
            "nodes": self._nodes,
            "shardings": self._shardings,
            "args": numbers,
            "kwargs": keywords,
        }
        return {name: value for name, value in body.items() if value is not None}

    def _node(self, tree: Any, depth: int) -> int:
        data = tree.node_data()
        if data is None:
            return self._leaf(next(self._leaves))
        kind, metadata = data
        if depth > MOST_DEPTH:
            raise _UnwritableError
        if tree.num_leaves == tree.num_nodes - 1:  # the usual last level: `children` would make an object of each leaf
            children = [self._leaf(leaf) for leaf in itertools.islice(self._leaves, tree.num_leaves)]
        else:
            children = [self._node(child, depth + 1) for child in tree.children()]
        if kind is dict and all(type(key) is str for key in metadata):
            key = (dict, *metadata, *children)
            size = sum(map(len, metadata)) + (_KEY_BYTES + _CHILD_BYTES) * len(children)
            return self._new(key, {"dict": dict(zip(metadata, children, strict=True))}, size)
        if kind is tuple or kind is list:
            key = (kind, *children)
            return self._new(key, {kind.__name__: children}, _CHILD_BYTES * len(children))
        if kind is type(None):
            return self._new("none", {"none": True})
        body: dict[str, Any] = {"node": literals.import_path(kind) or literals.opaque_type(kind)}
        if (metadata := statics.shown(metadata)) is not None:
            body["metadata"] = literals.write(metadata) if self._values else literals.opaque(metadata)
        body["children"] = children
        text = repr(body)
        return self._new((kind, text), body, len(text))

    def _leaf(self, leaf: Leaf | Static) -> int:
        if isinstance(leaf, Static):
            text = repr(leaf.written)
            return self._new(("static", text), {"static": leaf.written}, len(text))
        # Most leaves are one object where they are equal.
        number = self._known.get(id(leaf))
        if number is None:
            key = (leaf.shape, leaf.dtype, leaf.weak_type, leaf.layout, self._sharding(leaf.sharding))
            number = self._known[id(leaf)] = self._new(key, self._leaf_body(leaf, key[-1]), _LEAF_BYTES)
        return number

    def _leaf_body(self, leaf: Leaf, sharding: int | None) -> dict[str, Any]:
        if leaf.shape is None or not all(type(size) is int for size in leaf.shape):
            raise _UnwritableError
        body: dict[str, Any] = {"shape": list(leaf.shape), "dtype": leaf.dtype}
        if leaf.weak_type:
            body["weak_type"] = True
        if leaf.layout is not None:
            body["layout"] = leaf.layout
        if sharding is not None:
            body["sharding"] = sharding
        return body

    def _new(self, key: Hashable, body: Any, size: int = 0) -> int:
        found = self._numbers.setdefault(key, len(self._nodes))
        if found == len(self._nodes):
            self._nodes.append(body)
            self._bytes += _NODE_BYTES + size
            if self._bytes > MOST_BYTES:
                raise _UnwritableError
        return found

    def _sharding(self, sharding: Any) -> int | None:
        if sharding is None:
            return None
        number = self._sharding_numbers.get(sharding)
        if number is None:
            number = self._sharding_numbers[sharding] = len(self._shardings)
            self._shardings.append(_sharding(sharding))
        return number


def _place(fun: Any) -> dict[str, str]:
    """Returns where to find the function: its module and name, and what was started, a script or `-m` and a module."""
    fun, main = unwrapped(fun), sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    place = {
        "module": getattr(fun, "__module__", None),
        "qualname": getattr(fun, "__qualname__", None),
        "started": f"-m {spec.name}" if spec is not None else file and absolute(file),
    }
    return {name: value for name, value in place.items() if isinstance(value, str)}


def _sharding(sharding: Any) -> dict[str, Any]:
    kind = type(sharding).__name__
    if kind == "NamedSharding" and hasattr(sharding.mesh, "devices"):
        spec = [list(each) if isinstance(each, tuple) else each for each in sharding.spec]
        if all(each is None or isinstance(each, str | list) for each in spec):
            return {"mesh": _mesh(sharding.mesh), "spec": spec, "memory_kind": sharding.memory_kind}
    if kind == "SingleDeviceSharding":
        return {**_devices(list(sharding.device_set)), "memory_kind": sharding.memory_kind}
    return {"opaque": kind}


def _mesh(mesh: Any) -> dict[str, Any]:
    """Names, sizes and types of the axes, and the devices."""
    if mesh.devices.size > MOST_DEVICES:
        raise _UnwritableError
    types = getattr(mesh, "axis_types", None) or ()
    return {
        "axes": [[str(name), int(size)] for name, size in zip(mesh.axis_names, mesh.devices.shape, strict=True)],
        "types": [getattr(each, "name", str(each)) for each in types],
        **_devices(mesh.devices.flat),
    }


def _devices(devices: Sequence[Any]) -> dict[str, Any]:
    """Platform and numbers of devices, these as runs: `[first, how many]`."""
    runs: list[list[int]] = []
    for device in devices:
        if runs and device.id == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([device.id, 1])
    return {"platform": devices[0].platform, "devices": runs}
