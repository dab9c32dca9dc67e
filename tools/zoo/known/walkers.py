"""JAX: a loop outside of jit whose body is the method of a new object each time (jax-ml/jax#1710)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("jax",),
    says=(
        "`fori_loop` outside of jit knows its body by identity, and `walker.step` of a new object is a new function: "
        "each walk compiles the same loop. Use a function of the module, in one jitted function, or `vmap` the walks."
    ),
    causes={},
    findings=(Finding("eager_recompiles"),),
    loop=Loop("scan", 22, within=2),
    verdict="fix",
    first_try=FirstTry("half", "the finding, and no loop"),
)
