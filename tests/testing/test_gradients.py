"""Gradients against numerical differences: right rules pass, wrong ones are named by argument and mode."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs.testing import GradientMismatchError, assert_gradients_match

RANDOM = np.random.RandomState(0)
PARAMS = {"w": RANDOM.randn(4, 3).astype(np.float32), "b": np.zeros(3, np.float32)}
BATCH = {"x": RANDOM.randn(8, 4).astype(np.float32), "label": np.arange(8) % 3}


def loss(params: dict[str, Any], batch: dict[str, Any], scale: float = 1.0) -> dict[str, Any]:
    logits = jnp.tanh(batch["x"] @ params["w"] + params["b"])
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["label"][:, None], axis=1)
    return {"loss": -scale * picked.mean(), "guess": logits.argmax(axis=1)}


@jax.custom_vjp
def half_pulled(x):
    return x * x


half_pulled.defvjp(lambda x: (x * x, x), lambda x, g: (g * x,))


@jax.custom_jvp
def half_pushed(x):
    return x * x


@half_pushed.defjvp
def _(primals, tangents):
    return half_pushed(*primals), primals[0] * tangents[0]


def failure(fun: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(GradientMismatchError) as raised:
        assert_gradients_match(fun, args, **options)
    return str(raised.value)


def test_right_derivatives_pass() -> None:
    """A pytree with integers in it passes, and so do both orders; integers stay fixed and integer outputs are left
    out."""
    assert_gradients_match(jax.jit(loss), (PARAMS, BATCH, 0.5))
    assert_gradients_match(jax.jit(lambda w: jnp.sin(w) * w), (np.float32(0.7),), order=2)


def test_a_wrong_custom_vjp_is_named() -> None:
    def model(params, x):
        return half_pulled(params["w"]) @ x + params["b"]

    params = {"w": np.arange(1, 4, dtype=np.float32), "b": np.float32(0.5)}
    text = failure(model, params, np.ones(3, np.float32), modes=("rev",))
    assert "The derivatives of `test_a_wrong_custom_vjp_is_named.<locals>.model` are not what" in text
    assert re.search(r"  `params\['w'\]`, reverse mode \(vjp\): off by \S+ \(absolute\), 0.4\d+ \(relative\)", text)
    assert "These agree: `params['b']`, `x`." in text


def test_a_wrong_custom_jvp_is_named_in_both_modes() -> None:
    """The reverse mode is made from the rule of the forward mode."""
    text = failure(half_pushed, 2.0)
    assert "`x`, forward mode (jvp): off by " in text and "`x`, reverse mode (vjp): off by " in text


def test_size_hides_no_mistake() -> None:
    """JAX's checker lets an output of 5,000 numbers be off by half; here it may not be."""
    from jax.test_util import check_grads

    x = np.ones(5000, np.float32)
    check_grads(half_pushed, (x,), 1, modes=("fwd",))
    text = failure(half_pushed, x, modes=("fwd",))
    assert "`x`, forward mode (jvp): off by " in text


def test_a_small_argument_is_not_lost_beside_a_large_one() -> None:
    """Along one direction through all arguments the large one would outweigh it."""

    def model(large, small):
        return jnp.sum(large * 100) + half_pushed(small)

    text = failure(model, np.ones(1000, np.float32), np.float32(1.0), modes=("fwd",), eps=1e-1)
    assert "`small`, forward mode" in text
    assert "These agree: `large`." in text


def test_second_order_is_told_with_its_order() -> None:
    @jax.custom_jvp
    def cube(x, y):
        return x**3 * y

    @cube.defjvp
    def _(primals, tangents):
        x, y = primals
        own = 3 * jax.lax.stop_gradient(x) ** 2 * y * tangents[0]
        return cube(x, y), own + x**3 * tangents[1]

    assert_gradients_match(cube, (1.5, 0.3))
    text = failure(cube, 1.5, 0.3, order=2)
    assert "`x`, forward mode (jvp): order 2: off by " in text
    assert "These agree: `y`." in text

    @jax.custom_jvp
    def product(x, y):
        return x * y

    @product.defjvp
    def _(primals, tangents):
        x, y = primals
        return product(x, y), jax.lax.stop_gradient(y) * tangents[0] + jax.lax.stop_gradient(x) * tangents[1]

    assert "each argument agrees by itself, but all together do not: off by " in failure(product, 1.5, 0.3, order=2)


def test_what_is_not_finite_is_no_agreement() -> None:
    """JAX's checker takes nan for equal to nan."""
    from jax.test_util import check_grads

    def flat(x):
        return x * jnp.sqrt(x)

    check_grads(flat, (0.0,), 1)
    for fun, at in (
        (flat, 0.0),
        (jnp.log, -1.0),
        (lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), np.array([-1.0, 1.0], np.float32)),
    ):
        assert "`x`, reverse mode (vjp): the value or the derivative is not finite" in failure(fun, at)


def test_rounding_is_named_as_a_possible_cause_below_64_bits() -> None:
    """In float32 a large value drowns its differences; in float64 the same check passes, with a smaller step."""

    def shifted(x):
        return 1000 + jnp.sin(x)

    assert "repeat the check with `jax_enable_x64`" in failure(shifted, 0.5)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        assert_gradients_match(shifted, (np.float64(0.5),))
        text = failure(half_pushed, np.float64(2.0))
    assert "(step 0.0001)" in text
    assert "rounding" not in text


def test_other_numbers() -> None:
    assert_gradients_match(lambda z: z * z.conj(), (np.complex64(0.5 + 1j),))
    assert_gradients_match(jnp.sin, (jnp.ones(4, jnp.bfloat16),))
    assert_gradients_match(lambda key, x: jax.random.normal(key, (3,)) * x, (jax.random.key(0), np.ones(3, np.float32)))


@pytest.mark.parametrize(
    ("args", "options", "error", "told"),
    [
        (np.ones(3), {}, TypeError, r"`args` is a ndarray, but must be a tuple of the arguments: `\(x,\)` for one"),
        ((3,), {}, ValueError, "`sin` has no argument that can be differentiated: `args` holds int"),
        ((1.0,), {"modes": ("forward",)}, ValueError, r"`modes` is \('forward',\). Modes: fwd, rev"),
        ((1.0,), {"order": 0}, ValueError, "`order` is 0, but must be 1 or more"),
    ],
)
def test_wrong_use_is_explained(args: Any, options: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        assert_gradients_match(jnp.sin, args, **options)
    with pytest.raises(ValueError, match="returns nothing that can be differentiated"):
        assert_gradients_match(lambda x: jnp.argmax(x), (np.ones(3, np.float32),))
