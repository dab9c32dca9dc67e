"""JAX: a program without `jit` (dunnolab/xland-minigrid#17, jax-ml/jax#20326)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("jax",),
    says=(
        "Nothing is jitted: each turn dispatches some fifty single operations, after vmap has traced them again, and "
        "the host's dispatch is all of the time. `jax.jit` around the vmapped step makes it a hundred times as fast."
    ),
    causes={},
    findings=(Finding("unjitted_operations"),),
    verdict="fix",
    first_try=FirstTry(
        "wrong", "the cost of compiling alone; the rest of the time, which dispatching takes, was unknown"
    ),
    loop=Loop("<eager>", 5000),
    differs=dict.fromkeys(
        ("finding eager_initialization",), "Where compiling the operations takes more than a second, that is told, too."
    ),
)
