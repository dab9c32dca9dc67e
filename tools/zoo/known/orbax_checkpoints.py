"""Orbax: saves while it trains, and restores."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("orbax-checkpoint", "optax"),
    says=(
        "Saves every 30 steps in the background, waits and restores. What Orbax restores is committed to a device, "
        "what `init` returned was not, so `train_step` recompiles after the restore."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "placement": 1}},
    findings=(Finding("two_shardings_at_start", "train_step"),),
    loop=Loop("train_step", 180),
)
