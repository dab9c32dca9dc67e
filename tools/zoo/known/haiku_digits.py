"""Haiku: built operation by operation, a ragged last batch, and an evaluation by class."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("dm-haiku", "optax", "scikit-learn"),
    says=(
        "`network.init` runs without `jit`, so it compiles dozens of single operations. The last batch of an epoch is "
        "smaller: one program more, which is normal. `predict` gets as many rows as the test set has of each digit, "
        "27, 28, 30, 31 or 33: five programs where one would do."
    ),
    causes={"update": {"first_call": 1, "shape": 1}, "predict": {"first_call": 1, "shape": 4}},
    findings=(Finding("eager_initialization"), Finding("unbounded_shapes", "predict")),
    loop=Loop("update", 40 * 24),
)
