"""JAX: a program without `jit` (dunnolab/xland-minigrid#17, jax-ml/jax#20326)."""

from tools.zoo.entry import Entry, Finding, FirstTry

ENTRY = Entry(
    projects=("jax",),
    says=(
        "Nothing is jitted: each turn dispatches some fifty single operations, after vmap has traced them again, and "
        "the host's dispatch is all of the time. `jax.jit` around the vmapped step makes it a hundred times as fast."
    ),
    causes={},
    findings=(Finding("unjitted_operations"),),
    verdict="watch",
    first_try=FirstTry(
        "wrong", "the cost of compiling alone; the rest of the time, which dispatching takes, was unknown"
    ),
    differs=dict.fromkeys(
        ("finding unjitted_operations", "finding eager_initialization", "verdict", "time step", "time other"),
        "jaxobs finds no loop of single operations: it knows what compiling them took, and says to put "
        "them into one jitted function, but not that dispatching them is all that the loop does.",
    ),
)
