"""JAX and Optax: a list of arrays that grows."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says="Compiles as it should, but keeps the gradients of each step, half a MiB: memory grows with the steps.",
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("array_leak"),),
    loop=Loop("train_step", 690),
    variables={"JAXOBS_SAMPLE_INTERVAL": "0.15"},
)
