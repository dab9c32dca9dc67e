"""Categories, scopes and costs of operations of programs that XLA has compiled, and of names alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxobs.facts.profiles import CATEGORIES, OperationTime
from jaxobs.profiles import categories, reading

X = jnp.ones((64, 96))
IMAGES = jnp.ones((2, 12, 12, 8))
KERNEL = jnp.ones((3, 3, 8, 16))


def operations(folder: Path, fun: Callable[..., Any], *arguments: jax.Array) -> tuple[OperationTime, ...]:
    compiled = jax.jit(fun).lower(*arguments).compile()
    jax.profiler.start_trace(folder)
    jax.block_until_ready(compiled(*arguments))
    jax.profiler.stop_trace()
    return reading.read(folder).profile.operations


def convolved(x: jax.Array, kernel: jax.Array, padding: str = "SAME", stride: int = 1) -> jax.Array:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def looked_up(x: jax.Array) -> jax.Array:
    """Slices in a loop, whose beginning is computed."""

    def body(at: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        return at + 1, jax.lax.dynamic_slice(x, (at, 0), (8, 96))

    return jax.lax.scan(body, jnp.int32(0), None, length=20)[1]


CASES: dict[str, tuple[str, Callable[..., Any], tuple[jax.Array, ...]]] = {
    "product": ("matmul", lambda x: x @ x.T, (X,)),
    "product with what follows": ("matmul", lambda x: jnp.tanh(x @ x.T) + 1, (X,)),
    "batched product": ("matmul", lambda x: jnp.einsum("bij,bkj->bik", x, x), (jnp.ones((4, 32, 48)),)),
    "convolution": ("convolution", convolved, (IMAGES, KERNEL)),
    "arithmetic": ("elementwise", lambda x: jnp.sin(x) * 2 + jnp.exp(x), (X,)),
    "sum": ("reduce", lambda x: (x * 2).sum(1), (X,)),
    "transposition": ("copy", lambda x: jnp.transpose(x).copy(), (X,)),
    "slices": ("copy", looked_up, (X,)),
    "sort": ("other", lambda x: jnp.sort(x, axis=0), (X,)),
    "callback": ("custom", lambda x: jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct(x.shape, x.dtype), x), (X,)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_category_is_that_of_what_was_written(case: str, tmp_path: Path) -> None:
    """The operations that XLA has fused with it do not change its category."""
    category, fun, arguments = CASES[case]
    found = operations(tmp_path, fun, *arguments)
    assert category in {each.category for each in found}, [(each.operation, each.category) for each in found]
    heavy = {"matmul", "convolution", "reduce", "custom", "elementwise"} - {category}
    allowed = {"product with what follows": {"elementwise"}, "slices": {"elementwise"}}.get(case, set())
    assert not {each.category for each in found} & (heavy - allowed - ({"elementwise"} if case == "sort" else set()))


@pytest.mark.parametrize(
    ("fun", "arguments", "flops"),
    [
        (lambda x: x @ x.T, (X,), 2 * 64 * 96 * 64),
        (lambda x: jnp.einsum("bij,bkj->bik", x, x), (jnp.ones((4, 32, 48)),), 2 * 4 * 32 * 48 * 32),
        (convolved, (IMAGES, KERNEL), None),
        (lambda x, k: convolved(x, k, "VALID"), (IMAGES, KERNEL), 2 * 2 * 10 * 10 * 16 * 3 * 3 * 8),
        (lambda x, k: convolved(x, k, "SAME", 2), (IMAGES, KERNEL), None),
        (lambda x: jnp.maximum(x * 2, 1) + 3, (X,), None),
    ],
)
def test_floating_point_operations_are_those_of_xla(
    fun: Callable[..., Any], arguments: tuple[jax.Array, ...], flops: float | None, tmp_path: Path
) -> None:
    """By its own cost analysis, which leaves out what multiplies padding; by hand where a library has the product."""
    if (expected := flops) is None:
        analysis = jax.jit(fun).lower(*arguments).cost_analysis()
        expected = (analysis[0] if isinstance(analysis, list) else analysis)["flops"]
    found = sum(each.flops or 0.0 for each in operations(tmp_path, fun, *arguments))
    assert found == pytest.approx(expected, rel=0.02)


def test_bytes_are_those_of_operands_and_results(tmp_path: Path) -> None:
    """Each array once; of a slice only what is taken."""
    [only] = [each for each in operations(tmp_path, lambda x: jnp.sin(x) * 2, X) if each.category == "elementwise"]
    assert only.bytes == 2 * 64 * 96 * 4
    slices = [each for each in operations(tmp_path / "slices", looked_up, X) if each.category == "copy"]
    assert max(each.bytes or 0.0 for each in slices) < 20 * 64 * 96 * 4


NAMES = {
    "matmul": "dot.3 dot_general.3 ampere_sgemm_128x64_tn nvjet_tst_256x128_64x4_2x1",
    "convolution": "convolution.1 sm90_xmma_fprop_implicit_gemm_bf16",
    "elementwise": "convert.1 loop_add_fusion.4",
    "collective": "ncclDevKernel_AllReduce_Sum_f32_RING_LL all-gather-start.2 reduce-scatter.1",
    "reduce": "input_reduce_fusion.4",
    "transfer": "MemcpyH2D MemcpyD2H",
    "copy": "MemcpyD2D copy.7",
    "control": "while.3",
    "custom": "custom-call.9",
    "other": "what_is_this",
}


def test_without_a_program_the_name_tells() -> None:
    assert {category: {categories.of_name(name) for name in names.split()} for category, names in NAMES.items()} == {
        category: {category} for category in CATEGORIES
    }
