"""Grain: the input is slower than the step."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("grain", "optax", "scikit-learn"),
    says=(
        "Compiles once and trains in no time: nearly all of it is waiting for a pipeline that augments image by image "
        "in the same thread."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("input_bound", "train_step"),),
    loop=Loop("train_step", 2 * 1797 // 32),
)
