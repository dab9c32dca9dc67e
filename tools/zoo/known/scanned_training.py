"""Flax Linen and Optax: the whole training is one jitted call."""

from tools.zoo.entry import Entry

ENTRY = Entry(
    projects=("flax", "optax"),
    says="Sound: one program, called once. There is no loop in Python, and nothing to mend.",
    causes={"train": {"first_call": 1}},
    verdict="ok",
)
