"""JAX and Optax: a state that begins with a Python number."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "The score begins as the Python number 0.0, which is weakly typed, and comes back as `float32`: `train_step` "
        "compiles twice. Begin with `jnp.float32(0)`."
    ),
    causes={"train_step": {"first_call": 1, "weak_type": 1}},
    findings=(Finding("weak_type_at_start", "train_step"),),
    loop=Loop("train_step", 1000),
)
