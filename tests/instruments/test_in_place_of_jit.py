"""`jax.jit = jaxobs.jit`, as people do to try it: nothing recurses, libraries work, each call is counted once."""

import pytest
from helpers.run_programs import programs, run


@pytest.mark.slow
def test_jit_in_place_of_jaxs_own() -> None:
    """By each way to put it there; then JAX's own modules, Flax, Equinox and Optax are imported after it."""
    done = run(programs(__file__)["program"])
    assert done.returncode == 0, done.stderr[-2000:]
    *ways, errors = done.stdout.splitlines()
    assert len(ways) == 5 and all(each.endswith(" [3, 2]") for each in ways), ways
    assert errors == "{}"
