"""Devices of shardings and meshes, which their texts leave out: their order, above all."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_MOST_SINGLE = 8
_MOST_DEPTH = 4


def devices(placed: Any) -> tuple[Any, ...] | None:
    """Devices of a sharding or mesh, in their order; None where it has none, as over an `AbstractMesh`."""
    with contextlib.suppress(Exception):  # JAX raises ValueError; a sharding of the user's may raise anything
        return tuple(placed._device_assignment)
    with contextlib.suppress(Exception):
        return tuple(getattr(placed, "mesh", placed).devices.flat)
    with contextlib.suppress(Exception):
        return tuple(sorted(placed.device_set, key=lambda device: device.id))
    return None


def mesh_axes(sharding: Any) -> str | None:
    """Names and sizes of the axes of a sharding's mesh in their order; None where it has no mesh."""
    with contextlib.suppress(Exception):
        return str(dict(sharding.mesh.shape))
    return None


def axis_types(sharding: Any) -> str | None:
    """Auto, Explicit or Manual for each axis of a sharding's mesh; None where this JAX does not tell."""
    with contextlib.suppress(Exception):
        types = sharding.mesh.axis_types
        each = types if isinstance(types, tuple) else types.items()  # a dictionary before JAX 0.7
        return f"({', '.join(getattr(kind, 'name', str(kind)) for kind in each)})"
    return None


def named(devices: Sequence[Any]) -> str:
    """Every one with its platform, `cpu:0, cpu:1`; many as runs, `cpu:0-15`."""
    if len(devices) <= _MOST_SINGLE:
        return ", ".join(f"{each.platform}:{each.id}" for each in devices)
    platforms = dict.fromkeys(each.platform for each in devices)
    return ", ".join(f"{name}:{ordered([each for each in devices if each.platform == name])}" for name in platforms)


def ordered(devices: Sequence[Any]) -> str:
    """Returns the devices' numbers in this order, `0,1,2,3`; many as runs, `0-7,15-8`. Another order differs."""
    ids = [each.id for each in devices]
    if len(ids) <= _MOST_SINGLE:
        return ",".join(map(str, ids))
    runs: list[list[int]] = []
    for number in ids:
        run = runs[-1] if runs else []
        step = run[1] - run[0] if len(run) > 1 else 0
        if run and number - run[-1] in ((step,) if step else (1, -1)):
            run.append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def text(value: Any, form: Callable[[Any], str] = str) -> str:
    """`str` of an option or a config value; the order of devices is behind each sharding and mesh in it."""
    if type(value) in (tuple, list):
        return f"({', '.join(text(each, repr) for each in value)}{',' * (len(value) == 1)})"
    orders = [f" devices {ordered(found)}" for each in _placed(value, _MOST_DEPTH) if (found := devices(each))]
    return form(value) + "".join(dict.fromkeys(orders))


def _placed(value: Any, depth: int) -> Iterator[Any]:
    import jax

    if isinstance(value, jax.sharding.Mesh | jax.sharding.Sharding):
        yield value
    elif depth and isinstance(value, tuple):  # JAX's environment of `with mesh` is a named one
        for each in value:
            yield from _placed(each, depth - 1)
