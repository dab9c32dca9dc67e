"""Keras: fit with validation."""

from tools.zoo.entry import Entry, Loop

ENTRY = Entry(
    projects=("keras", "scikit-learn"),
    says=(
        "Sound, as Keras's own guide: 38 steps an epoch, of which the last is smaller, so two programs of "
        "`train_step`; `test_step` has three, for its last batch has 12 rows in validation and 9 in the test."
    ),
    causes={"train_step": {"first_call": 1, "shape": 1}, "test_step": {"first_call": 1, "shape": 2}},
    loop=Loop("train_step", 1520),
)
