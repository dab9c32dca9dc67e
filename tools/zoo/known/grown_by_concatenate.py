"""JAX: an array that grows by one row in each iteration (jax-ml/jax#4865, pyro-ppl/numpyro#118)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("jax",),
    says=(
        "The step compiles once, but each `jnp.concatenate` outside of it has another size and compiles: 64 programs. "
        "Collect the samples in a list and stack them once, or sample in one `lax.scan`."
    ),
    causes={"metropolis": {"first_call": 1}},
    findings=(Finding("eager_recompiles"),),
    loop=Loop("metropolis", 64),
    verdict="fix",
    first_try=FirstTry("right"),
)
