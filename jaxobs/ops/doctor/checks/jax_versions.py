"""`jax` and `jaxlib`: whether they fit, and whether those that are installed are those that a program imports."""

from collections.abc import Iterator
from pathlib import Path

from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, Machine, ok
from jaxobs.ops.doctor.probes import NO_ANSWER


def check(machine: Machine) -> Iterator[Finding]:
    """By what is installed, and by an import in a process of its own."""
    jax, jaxlib = machine.version("jax"), machine.version("jaxlib")
    if jax is None or jaxlib is None:
        missing = "jax" if jax is None else "jaxlib"
        yield Finding(
            severity="critical", title=f"{missing} is not installed", entity=missing,
            evidence=f"jax {jax or 'is missing'}, jaxlib {jaxlib or 'is missing'}",
            why="No JAX program can start.", fix="pip install -U jax",
        )  # fmt: skip
        return
    yield from _duplicates(machine)
    imported = machine.imported
    if imported.trouble == NO_ANSWER:
        yield Finding(
            severity="warning", title="`import jax` takes very long", entity="jax", evidence=NO_ANSWER,
            why="Every start waits for it: a slow or hanging file system, most of the time.",
            fix="python -X importtime -c 'import jax'",
        )  # fmt: skip
        return
    if imported.trouble is not None and (hiding := _hides(machine)) is not None:
        yield Finding(
            severity="critical", title="`import jax` finds a file of this directory", entity=hiding,
            evidence=f"{hiding}; {imported.trouble.splitlines()[-1] if imported.trouble else 'it fails'}",
            why="It hides the installed package: no JAX program can start here.",
            fix=f"mv {shell.word(hiding)} {shell.word(hiding.removesuffix('.py') + '_renamed')}"
            f"{'.py' if hiding.endswith('.py') else ''}",
        )  # fmt: skip
        return
    if imported.trouble is not None:
        last = imported.trouble.splitlines()[-1] if imported.trouble else ""
        culprits = imported.variables
        shown = " and ".join(f"{each}={machine.environment.get(each, '')}" for each in culprits)
        yield Finding(
            severity="critical", entity=culprits[0] if culprits else "jax", why="No JAX program can start.",
            title="`import jax` fails" + (f" because of {' and '.join(culprits)}" if culprits else ""),
            evidence=f"{last}; without {shown} it works" if culprits else last,
            fix=f"unset {' '.join(culprits)}" if culprits else f'pip install -U "jax=={jax}" "jaxlib=={jax}"',
        )  # fmt: skip
        return
    if (imported.jax, imported.jaxlib) != (jax, jaxlib):
        yield Finding(
            severity="warning", title="A program imports another JAX than the one that is installed", entity="jax",
            evidence=f"installed: jax {jax}, jaxlib {jaxlib}; imported: jax {imported.jax}, jaxlib {imported.jaxlib} "
            f"from {imported.file}",
            why="What pip says and what runs are two things: an upgrade has no effect.",
            fix='Look for another copy: python -c "import jax, sys; print(jax.__file__, sys.path)"',
        )  # fmt: skip
    elif not _is_package(imported.file, machine):
        yield Finding(
            severity="warning", title="`import jax` finds a file of this directory", entity=imported.file,
            evidence=f"jax comes from {imported.file}", why="It hides the installed package.",
            fix=f"Rename {imported.file}, or start the job in another directory",
        )  # fmt: skip
    else:
        yield ok(f"jax {jax} and jaxlib {jaxlib} fit", f"imported from {imported.file}", "jax")


def _duplicates(machine: Machine) -> Iterator[Finding]:
    for name in ("jax", "jaxlib"):
        copies = {each.place: each.version for each in machine.packages if each.name == name}
        if len(set(copies.values())) > 1:
            places = ", ".join(f"{version} in {place}" for place, version in copies.items())
            yield Finding(
                severity="warning", title=f"{name} is installed {len(copies)} times", entity=name, evidence=places,
                why="Which one is imported depends on the order of sys.path.", fix=f"pip uninstall {name}, until none "
                "is left; then install it once",
            )  # fmt: skip


def _is_package(file: str, machine: Machine) -> bool:
    return Path(file).resolve().parent.parent != machine.directory.resolve()


def _hides(machine: Machine) -> str | None:
    """Returns what is called like JAX in the working directory, where a program that starts there finds it first."""
    for name in ("jax.py", "jaxlib.py", "jax", "jaxlib"):
        path = machine.directory / name
        if path.is_file() or (path / "__init__.py").is_file():
            return str(path)
    return None
