"""Flax Linen and Optax: the whole training is one jitted call."""

from tools.zoo.entry import Entry, FirstTry

ENTRY = Entry(
    projects=("flax", "optax"),
    says="Sound: one program, called once. There is no loop in Python, and nothing to mend.",
    causes={"train": {"first_call": 1}},
    verdict="ok",
    first_try=FirstTry(
        "wrong", "`watch`, because 44 s were unknown: imports, on a machine with six programs for each core"
    ),
)
