"""JAX in two processes, one of which loads more slowly."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says="Sound, but process 1 takes 60 ms to load each batch, and process 0 waits for it in each step.",
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("input_bound", "train_step"), Finding("straggler")),
    loop=Loop("train_step", 400),
    processes=2,
)
