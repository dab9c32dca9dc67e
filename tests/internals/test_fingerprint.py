"""The hash of a program: the same wherever the program is, and another for every other program."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs.internals.programs import _without_locations, fingerprint

PROGRAM = """
    import os, sys
    keep = [bytearray(1 << 20) for _ in range(int(sys.argv[1]))]

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jaxobs.internals import fingerprint

    def loss(parameters, batch):
        jax.debug.print("loss of {}", batch)
        for parameter in parameters.values():
            batch = jnp.tanh(batch @ parameter) + np.arange(4, dtype=np.float32)
        return batch.sum()

    parameters = {name: jnp.ones((4, 4)) for name in "abc"}
    print(fingerprint(jax.jit(jax.grad(loss)).lower(parameters, jnp.ones((2, 4))).compiler_ir()))
"""


def lowered(fun: Any, *args: Any, **options: Any) -> Any:
    return jax.jit(fun, **options).lower(*args).compiler_ir()


def test_it_is_equal_in_every_process_and_from_every_file(tmp_path: Path) -> None:
    found = set()
    for number, lines in enumerate((0, 40)):
        script = tmp_path / f"program_{number}.py"
        script.write_text("\n" * lines + textwrap.dedent(PROGRAM))
        environment = {**os.environ, "PYTHONHASHSEED": str(number), "PYTHONPATH": os.pathsep.join(sys.path)}
        result = subprocess.run(
            [sys.executable, script, str(number * 7)], capture_output=True, text=True, env=environment, check=True
        )
        found.add(result.stdout)
    assert len(found) == 1
    assert len(found.pop().strip()) == 12


def test_it_is_equal_wherever_the_code_stands() -> None:
    source = "import jax.numpy as jnp\ndef f(x):\n    return jnp.sin(x) * 2"
    modules = []
    for lines, name in ((0, "one.py"), (50, "another.py")):
        exec(compile("\n" * lines + source, name, "exec"), space := {})
        modules.append(lowered(space["f"], jnp.ones(3)))
    first, second = (module.operation.get_asm(enable_debug_info=True) for module in modules)
    assert "one.py" in first
    assert "another.py" in second
    assert fingerprint(modules[0]) == fingerprint(modules[1])


def test_it_differs_from_that_of_every_other_program() -> None:
    """Constants, operations and results are parts of it, and all that the compiler sees of the arguments."""

    def f(x: Any) -> Any:
        return jnp.sin(x) * 2

    others = (
        lambda x: jnp.sin(x) * 3, lambda x: jnp.cos(x) * 2, lambda x: jnp.sin(x + 1) * 2, lambda x: (f(x), x),
        lambda x: f(x) + np.arange(3, dtype=np.float32),
    )  # fmt: skip
    modules = [lowered(each, jnp.ones(3)) for each in (f, *others)]
    modules += [lowered(f, jnp.ones(4)), lowered(f, jnp.ones(3, jnp.bfloat16))]
    modules.append(lowered(f, jnp.ones(3), donate_argnums=0))
    assert len(set(map(fingerprint, modules))) == len(modules)


def test_it_tells_large_constants_apart() -> None:
    one = np.arange(5000, dtype=np.float32)
    another = one.copy()
    another[2500] += 1
    modules = [lowered(lambda x, c=constant: x + c, jnp.ones(5000)) for constant in (one, another, one.copy())]
    first, second, third = map(fingerprint, modules)
    assert first != second
    assert first == third


def test_the_program_itself_is_left_alone() -> None:
    module = lowered(lambda x: jnp.sin(x), jnp.ones(3))
    before = module.operation.get_asm(enable_debug_info=True)
    fingerprint(module)
    assert "test_fingerprint" in before
    assert module.operation.get_asm(enable_debug_info=True) == before


def test_the_address_of_a_custom_partitioning_is_no_part_of_it() -> None:
    """The number of a callback differs from process to process."""
    from jax.experimental.custom_partitioning import custom_partitioning

    def partitioned() -> Any:
        @custom_partitioning
        def f(x: Any) -> Any:
            return jnp.sin(x)

        f.def_partition(
            partition=lambda mesh, shapes, result: (mesh, jnp.sin, result.sharding, (shapes[0].sharding,)),
            infer_sharding_from_operands=lambda mesh, shapes, result: shapes[0].sharding,
            sharding_rule="i -> i",
        )
        return f

    # Both alive, or the second might come to lie where the first was.
    functions = [partitioned(), partitioned()]
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    modules = [lowered(lambda x, g=g: g(x), jnp.ones(8), in_shardings=sharding) for g in functions]
    assert modules[0].operation.get_asm() != modules[1].operation.get_asm()
    program, in_key = _without_locations(modules[0])
    assert b"CustomSPMDPartitioning" in program and not in_key, "JAX's own key has the address"
    assert fingerprint(modules[0]) == fingerprint(modules[1])


def test_without_the_strip_pass_it_is_still_a_hash_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAX without what we use prints the program instead: slower, with the same properties."""
    import jax._src.lib.mlir as mlir

    monkeypatch.delattr(mlir, "passmanager")
    monkeypatch.setitem(sys.modules, "jax._src.lib.mlir.passmanager", None)

    def f(x: Any) -> Any:
        return jnp.sin(x)

    modules = [lowered(f, jnp.ones(n)) for n in (3, 3, 4)]
    first, second, third = map(fingerprint, modules)
    assert first == second != third
