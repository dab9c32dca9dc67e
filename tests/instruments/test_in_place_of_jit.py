"""`jax.jit = jaxobs.jit`, as people do to try it: nothing recurses, libraries work, each call is counted once."""

from __future__ import annotations

import pytest
from helpers.run_programs import run

PROGRAM = """
    import functools, importlib, json
    from jaxobs import jit
    import jaxobs, jax

    original = jax.jit
    PUT = {
        "itself": jaxobs.jit,
        "imported before JAX": jit,
        "a partial": functools.partial(jaxobs.jit, name=None),
        "around it": lambda fun=None, **options: jaxobs.jit(fun, **options),
        "around it and around what is jitted": (
            lambda fun=None, **options: jaxobs.jit(functools.wraps(fun)(lambda *a: fun(*a)), **options)
        ),
    }

    def calls():
        found = {each.name: each.calls for each in jaxobs.snapshot().functions}
        return [found.get(name, 0) for name in ("__main__.double", "__main__.power")]

    def double(x): return 2 * x
    def power(x, n): return x ** n

    for how, put in PUT.items():
        before = calls()
        jax.jit = put
        from jax import jit as imported
        assert imported is jax.jit
        doubled = jax.jit(double)
        assert doubled(1.0) == 2.0 and doubled(2.0) == 4.0
        assert jax.grad(jax.jit(lambda x: x * x))(3.0) == 6.0
        assert jax.jit(power, static_argnums=1)(2.0, 3) == 8.0
        assert jax.jit(double).lower(1.0).compile()(1.0) == 2.0
        try:
            jax.jit(double, static_argnums="no")
        except TypeError:
            pass
        assert jaxobs.jit(power, static_argnums=1)(2.0, 3) == 8.0  # also where the one before it failed
        devices = jax.local_device_count()
        assert jax.pmap(lambda x: x + 1)(jax.numpy.ones(devices)).sum() == 2.0 * devices
        jax.jit = original
        plain = jax.jit(double)
        assert not type(plain).__module__.startswith("jaxobs") and plain(3.0) == 6.0
        assert jaxobs.jit(double)(3.0) == 6.0
        print(how, [now - then for now, then in zip(calls(), before)])

    # Libraries that jit when they are imported.
    jax.jit = jaxobs.jit
    import jax.numpy as jnp
    for name in ("jax.scipy.linalg", "jax.scipy.optimize", "jax.scipy.stats", "jax.experimental.ode",
                 "jax.experimental.sparse", "jax.experimental.checkify", "jax.example_libraries.optimizers"):
        importlib.import_module(name)
    import flax.linen as nn
    from flax import nnx
    import equinox as eqx
    import optax

    x = jnp.ones((1, 2))
    assert nnx.jit(lambda model, x: model(x))(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), x).shape == (1, 3)
    dense = nn.Dense(3)
    params = jax.jit(dense.init)(jax.random.key(0), x)
    assert jax.jit(dense.apply)(params, x).shape == (1, 3)
    assert nn.jit(nn.Dense)(3).init(jax.random.key(0), x)["params"]["kernel"].shape == (2, 3)
    linear = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    assert eqx.filter_jit(lambda model, x: model(x))(linear, x[0]).shape == (3,)
    adam = optax.adam(1e-3)
    jax.jit(adam.update)(params, adam.init(params), params)
    assert jax.scipy.linalg.solve(jnp.eye(2), jnp.ones(2)).shape == (2,)
    print(jaxobs.snapshot().observer.internal_errors)
"""


@pytest.mark.slow
def test_jit_in_place_of_jaxs_own() -> None:
    """By each way to put it there; then JAX's own modules, Flax, Equinox and Optax are imported after it."""
    done = run(PROGRAM)
    assert done.returncode == 0, done.stderr[-2000:]
    *ways, errors = done.stdout.splitlines()
    assert len(ways) == 5 and all(each.endswith(" [3, 2]") for each in ways), ways
    assert errors == "{}"
