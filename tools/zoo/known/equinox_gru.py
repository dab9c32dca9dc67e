"""Equinox: sequences of any length."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("equinox", "optax"),
    says=(
        "Each batch is as long as its longest sequence: 24 batches have 15 lengths, and `train_step` compiles for "
        "each. Pad to a few lengths."
    ),
    causes={"train_step": {"first_call": 1, "shape": 14}},
    findings=(Finding("unbounded_shapes", "train_step"),),
    loop=Loop("train_step", 24),
)
