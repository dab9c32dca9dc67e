"""JAX and Optax: L-BFGS, whose state changes its types."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "`optax.lbfgs().init` leaves counts and errors of the line search weakly typed, and `update` returns them "
        "strongly typed: `step`, which takes seconds to compile, compiles twice. Cast the state after `init`."
    ),
    causes={"init": {"first_call": 1}, "step": {"first_call": 1, "weak_type": 1}},
    findings=(Finding("weak_type_at_start", "step"),),
    loop=Loop("step", 120),
)
