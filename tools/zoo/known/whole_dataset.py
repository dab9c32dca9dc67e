"""JAX and Optax: a step that is given all of the data, as a NumPy array."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "Each step copies the whole data set, 179 MiB in NumPy arrays, to the device, to pick 128 rows of it: four "
        "fifths of the time. `jax.device_put` it once, before the loop."
    ),
    causes={"create": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("host_bound", "train_step"),),
    loop=Loop("train_step", 200),
    verdict="fix",
    first_try=FirstTry("wrong", "`ok`: copying the arguments counted as steps"),
)
