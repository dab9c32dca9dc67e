"""Flax NNX: training that diverges."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("flax", "optax"),
    says="Compiles as it should, but the learning rate is far too high: the loss overflows within a few steps.",
    causes={"build": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("nonfinite_values"),),
    loop=Loop("train_step", 400),
    nonfinite=True,
)
