"""Penzai: its own trainer."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("penzai", "optax"),
    says="Trains soundly, one program; `from_config` and the optimiser's state are built eagerly.",
    causes={"_stateful_trainer_step": {"first_call": 1}},
    findings=(Finding("eager_initialization"),),
    loop=Loop("_stateful_trainer_step", 600),
)
