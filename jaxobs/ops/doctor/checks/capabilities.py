"""Checks what jaxobs can see in this version of JAX."""

import warnings
from collections.abc import Iterator

from jaxobs import internals
from jaxobs.base.links import PROJECT
from jaxobs.ops.doctor.machine import Finding, Machine, ok


def check(machine: Machine) -> Iterator[Finding]:
    """By a look at JAX's modules, in this process: it wakes no backend and compiles nothing."""
    if machine.imported.trouble is not None:
        yield Finding(
            severity="info", title="What jaxobs can see is not known", entity="jaxobs", evidence="`import jax` fails",
            fix="Fix the import first",
        )  # fmt: skip
        return
    with warnings.catch_warnings():
        # What JAX warns of while it is imported is what other checks look at.
        warnings.simplefilter("ignore")
        import jax

        found = internals.probe()
    missing = [name for name, there in found.items() if not there]
    if missing:
        yield Finding(
            severity="info", title=f"jaxobs sees less in jax {jax.__version__}", entity="jaxobs",
            evidence=f"missing: {', '.join(missing)}",
            why="The rest works; some causes are less exact, or some figures are absent.",
            fix=f"pip install -U git+{PROJECT}",
        )  # fmt: skip
    else:
        yield ok(f"jaxobs sees all it wants in jax {jax.__version__}", f"{len(found)} capabilities")
