"""Functions that are called twice: the same results pass, and what differs is named."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs.testing import NotRepeatableError, assert_repeatable


def test_a_repeatable_function_passes_even_if_it_donates() -> None:
    """NaN, keys, structures and donated arguments are no difference; the first result is returned."""

    @jax.jit
    def sample(key: Any, scale: Any) -> Any:
        return {"x": jax.random.normal(key, (8,)) * scale, "key": jax.random.split(key), "nan": scale * jnp.nan}

    result = assert_repeatable(sample, jax.random.key(3), jnp.float32(2))
    assert result["x"].shape == (8,)
    assert_repeatable(jax.jit(lambda x: x + 1, donate_argnums=0), jnp.ones(4), times=3)
    with pytest.raises(ValueError, match="`times` is 1"):
        assert_repeatable(sample, jax.random.key(3), jnp.float32(2), times=1)


def test_what_differs_is_named() -> None:
    rng = np.random.default_rng(0)
    values = iter((2.0, 2.5))
    told = r"`\['b'\]`: 1 of 4 elements differ, the first at \[2\]: 2.0, then 2.5; the largest difference is 0.5"
    with pytest.raises(NotRepeatableError, match=told):
        assert_repeatable(lambda: {"a": np.ones(3), "b": np.array([0.0, 1.0, next(values), 3.0])})
    sizes = iter((3, 4))
    with pytest.raises(NotRepeatableError, match=r"float64\[3\], then float64\[4\]"):
        assert_repeatable(lambda: np.zeros(next(sizes)))
    kinds = iter(((1,), [1]))
    with pytest.raises(NotRepeatableError, match="another structure"):
        assert_repeatable(lambda: next(kinds))
    with pytest.raises(NotRepeatableError, match="another value: 1 of 1 elements differ"):
        assert_repeatable(lambda: np.float32(rng.random()))
