"""JAX and Optax: reinforcement learning with the environment inside the jitted update."""

from tools.zoo.entry import Entry, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says="Sound: one program of rollout and update, its state donated, and the result read every twentieth time.",
    causes={"init": {"first_call": 1}, "update": {"first_call": 1}},
    loop=Loop("update", 60),
    verdict="ok",
    first_try=FirstTry("right"),
)
