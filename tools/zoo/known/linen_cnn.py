"""Flax Linen: sound."""

from tools.zoo.entry import Entry, Loop

ENTRY = Entry(
    projects=("flax", "optax", "scikit-learn"),
    says="Sound: initialised under one jit, batches of one size, and the test of each epoch by a function of its own.",
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}, "eval_step": {"first_call": 1}},
    loop=Loop("train_step", 12 * 30),
)
