"""JAX and Optax: NumPy copies that are kept."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "Keeps the activations of each batch as a NumPy array, 2 MiB in each step: the process grows by a gigabyte. "
        "Keep a sample, or write them to a file."
    ),
    causes={"create": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("host_memory_leak", "train_step"),),
    loop=Loop("train_step", 500),
    first_try=FirstTry("wrong", "`ok`: the first of five samples also had the start, and so grew faster"),
)
