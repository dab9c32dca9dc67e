"""Flax NNX: built as in its tutorials, eagerly."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("flax", "optax", "scikit-learn"),
    says=(
        "The model is built eagerly, as the tutorials do: many single operations compile. Training and accuracy "
        "compile once each, because each of the two functions always gets the model in the same mode."
    ),
    causes={"train_step": {"first_call": 1}, "accuracy": {"first_call": 1}},
    findings=(Finding("eager_initialization"),),
    loop=Loop("train_step", 6 * 50),
)
