"""JAX and Optax: a NumPy routine that the compiled step calls back."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "More than four fifths of each step is `look_up`, point by point in Python, which `jax.pure_callback` runs "
        "while the device waits. Write it with `jnp.searchsorted`, or let NumPy look all points up at once."
    ),
    causes={"create": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("host_bound", "train_step"),),
    loop=Loop("train_step", 500),
    verdict="fix",
    first_try=FirstTry("wrong", "`ok`: the callback counted as steps, though its line was shown"),
)
