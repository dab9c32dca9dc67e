"""The packages that bring an accelerator: whether they fit `jaxlib`, and whether there are two of a kind."""

import re
from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok, release

PLUGINS = r"jax-(cuda\d+|rocm\d+|metal)-(plugin|pjrt)"


def check(machine: Machine) -> Iterator[Finding]:
    """Compares the releases: a plugin works with the jaxlib of its own release only."""
    found = machine.versions(PLUGINS)
    jaxlib = machine.version("jaxlib")
    for name, version in found.items():
        if jaxlib is None or release(version)[:3] == release(jaxlib)[:3]:
            continue
        toolkit = name.split("-")[1]
        yield Finding(
            severity="critical", title=f"{name} {version} does not fit jaxlib {jaxlib}", entity=name,
            evidence=f"{name} {version}, jaxlib {jaxlib}",
            why="JAX skips a plugin of another version, or crashes in it, and runs on the CPU.",
            fix=f'pip install -U "jax[{toolkit}]=={machine.version("jax") or jaxlib}"',
        )  # fmt: skip
    yield from _halves(found)
    yield from _generations(found)
    yield from _libtpus(machine)
    yield from _pinned(machine)
    libtpu = machine.version("libtpu") or machine.version("libtpu-nightly")
    every = dict(found) if libtpu is None else {**found, "libtpu": libtpu}
    if every:
        yield ok("Accelerator plugins are installed", ", ".join(f"{n} {v}" for n, v in every.items()))
    else:
        yield ok("No accelerator plugin is installed", f"jaxlib {jaxlib or 'is missing'} alone: JAX runs on the CPU")


def _halves(found: dict[str, str]) -> Iterator[Finding]:
    """Compares the two packages of a plugin."""
    for name in found:
        base, _, half = name.rpartition("-")
        other = f"{base}-{'pjrt' if half == 'plugin' else 'plugin'}"
        if base != "jax-metal" and other not in found:
            yield Finding(
                severity="critical", title=f"{name} is installed without {other}", entity=other,
                evidence=f"installed: {', '.join(found)}", why="JAX cannot load the plugin, and runs on the CPU.",
                fix=f'pip install "{other}=={found[name]}"',
            )  # fmt: skip


def _generations(found: dict[str, str]) -> Iterator[Finding]:
    generations = sorted({name.split("-")[1] for name in found if name.startswith("jax-cuda")})
    if len(generations) > 1:
        old, new = generations[0], generations[-1]
        yield Finding(
            severity="critical", title=f"Plugins for {' and '.join(generations)} are both installed",
            entity=f"jax-{old}-plugin", evidence=", ".join(f"{name} {version}" for name, version in found.items()),
            why="Both register the platform `cuda`, and which one wins is chance.",
            fix=f"pip uninstall -y jax-{old}-plugin jax-{old}-pjrt   # keeps {new}",
        )  # fmt: skip


def _libtpus(machine: Machine) -> Iterator[Finding]:
    found = machine.versions(r"libtpu(-nightly)?")
    copies = {each.place: f"{each.version} in {each.place}" for each in machine.packages if each.name in found}
    if len(found) == 1 < len(copies):
        yield Finding(
            severity="critical", title=f"{next(iter(found))} is installed {len(copies)} times", entity="libtpu",
            evidence=", ".join(copies.values()),
            why="The order of sys.path decides which libtpu.so is loaded: PJRT may refuse it.",
            fix=f"pip uninstall -y {next(iter(found))}, until none is left; then pip install -U \"jax[tpu]\"",
        )  # fmt: skip
    if len(found) > 1:
        yield Finding(
            severity="critical", title="Two packages bring libtpu.so", entity="libtpu",
            evidence=", ".join(f"{name} {version}" for name, version in found.items()),
            why="Both install the module `libtpu`, and the last one installed wins: PJRT may refuse it.",
            fix='pip uninstall -y libtpu libtpu-nightly && pip install -U "jax[tpu]"',
        )  # fmt: skip


def _pinned(machine: Machine) -> Iterator[Finding]:
    """Compares libtpu with the release that this JAX was made for, as its own requirements say."""
    libtpu, jax = machine.version("libtpu"), next((each for each in machine.packages if each.name == "jax"), None)
    wanted = re.match(r"libtpu\s*==\s*(\d+(?:\.\d+)*)", next(iter(jax.requires), "")) if jax is not None else None
    if libtpu is None or jax is None or wanted is None:
        return
    parts = wanted[1].split(".")
    if libtpu.split(".")[: len(parts)] != parts:
        yield Finding(
            severity="warning", title=f"libtpu {libtpu} is not the release that jax {jax.version} is made for",
            entity="libtpu", evidence=f"libtpu {libtpu}; jax {jax.version} requires {jax.requires[0].split(';')[0]}",
            why="PJRT refuses a libtpu of another API (`Mismatched PJRT plugin PJRT API version`), or programs compile "
            "differently.", fix=f'pip install -U "jax[tpu]=={jax.version}"',
        )  # fmt: skip
