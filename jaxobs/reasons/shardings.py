"""Differences between two shardings, as texts that always differ."""

from __future__ import annotations

from typing import Any

from jaxobs.internals import shardings
from jaxobs.reasons import texts


def where(sharding: Any) -> tuple[frozenset[Any] | None, Any] | None:
    """Devices, without their order, and kind of memory."""
    if sharding is None:
        return None
    devices = shardings.devices(sharding)
    return (None if devices is None else frozenset(devices), getattr(sharding, "memory_kind", None))


def differing(old: Any, new: Any) -> tuple[str, str]:
    """Spec or devices of both, then what else differs: mesh, order of devices, types of axes, kind of memory."""
    if old is None or new is None:
        return _placed(old), _placed(new)
    both = (old, new)
    specs = [_spec(each) for each in both]
    parts = [[spec or _devices(each)] for spec, each in zip(specs, both, strict=True)]

    def tell(*told: str | None) -> None:
        if told[0] != told[1]:
            for part, each in zip(parts, told, strict=True):
                if each is not None:
                    part.append(each)

    meshed = specs[0] is not None and specs[1] is not None
    if meshed:
        tell(*(_prefixed("on ", shardings.mesh_axes(each)) for each in both))
        tell(*_order(old, new))
        if len({shardings.mesh_axes(each) for each in both}) == 1:
            tell(*(_prefixed("axis types ", shardings.axis_types(each)) for each in both))
    elif specs == [None, None]:
        if type(old) is not type(new):
            tell(*(f"as a {type(each).__qualname__}" for each in both))
        if where(old) == where(new) or parts[0] == parts[1]:
            tell(*_order(old, new))
    tell(*(_prefixed("in ", getattr(each, "memory_kind", None)) for each in both))
    before, after = (" ".join(part) for part in parts)
    if before == after:
        before, after = texts.difference(str(old), str(new))
    return texts.unlike(before, after, old, new)


def _order(old: Any, new: Any) -> tuple[str | None, str | None]:
    """Returns the devices, if as many are in another order or are others; else the sizes of the meshes say more."""
    before, after = shardings.devices(old), shardings.devices(new)
    if before == after:
        return None, None
    if before is None or after is None:
        return _over(before), _over(after)
    if len(before) != len(after):
        return None, None
    name, lead = (shardings.ordered, "devices ") if set(before) == set(after) else (shardings.named, "on ")
    was, now = texts.difference(name(before), name(after))
    return lead + was, lead + now


def _over(devices: tuple[Any, ...] | None) -> str:
    return "over an abstract mesh" if devices is None else f"on {shardings.named(devices)}"


def _placed(sharding: Any) -> str:
    if sharding is None:
        return "uncommitted"
    spec = _spec(sharding)
    return f"committed to {_devices(sharding)}" if spec is None else f"{spec} on {shardings.mesh_axes(sharding)}"


def _prefixed(before: str, value: Any) -> str | None:
    return None if value is None else f"{before}{value}"


def _spec(sharding: Any) -> str | None:
    spec = getattr(sharding, "spec", None)
    if spec is None:
        return None
    # Iterating raises where some axes are unreduced.
    axes = [repr(each) for each in getattr(spec, "partitions", spec)]
    for name in ("unreduced", "reduced"):  # since JAX 0.7
        among = getattr(spec, name, None)
        if among:
            axes.append(f"{name}={{{', '.join(sorted(map(repr, among)))}}}")
    return f"P({', '.join(axes)})"


def _devices(sharding: Any) -> str:
    devices = shardings.devices(sharding)
    if devices is None:
        return str(sharding)
    devices = tuple(sorted(devices, key=lambda device: device.id))
    more = f" and {len(devices) - 8} more" if len(devices) > 8 else ""
    return ", ".join(f"{each.platform}:{each.id}" for each in devices[:8]) + more
