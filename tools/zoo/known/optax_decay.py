"""Optax: a step that is made anew for each epoch."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "`train_step` is defined and jitted inside the loop over epochs, around an optimiser with a smaller learning "
        "rate: twelve functions, twelve programs. Use an Optax schedule, or inject the learning rate, with one step."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "new_function": 11}},
    findings=(Finding("recreated_functions", "train_step"),),
    loop=Loop("train_step", 12 * 64, within=12),
)
