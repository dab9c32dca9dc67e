"""JAX: a gradient that is jitted for each of several runs (jax-ml/jax#1630)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("jax",),
    says=(
        "`jit(grad(lossf))` is made inside the loop over starts, so the same program compiles ten times, and each "
        "stays in memory. Make it once before the loop. That the update is NumPy on the host matters little here."
    ),
    causes={"lossf": {"first_call": 1, "new_function": 9}},
    findings=(Finding("recreated_functions", "lossf"),),
    loop=Loop("lossf", 300, within=10),
    verdict="fix",
    first_try=FirstTry("right"),
)
