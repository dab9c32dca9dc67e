"""JAX and Optax: a static configuration of which one field changes."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "The temperature falls in each step and is a field of a static `Config`, so `train_step` compiles for each of "
        "40 steps. Pass the temperature as an array, and leave the rest static."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "static_argument": 39}},
    findings=(Finding("static_values", "train_step"),),
    loop=Loop("train_step", 40),
)
