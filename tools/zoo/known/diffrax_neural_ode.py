"""Diffrax: short trajectories first, then whole ones."""

from tools.zoo.entry import Entry, Loop

ENTRY = Entry(
    projects=("diffrax", "equinox", "optax"),
    says="Sound: two lengths of trajectory, so two programs of `train_step`, as Diffrax's tutorial does it.",
    causes={
        "trajectories": {"first_call": 1},
        "build": {"first_call": 1},
        "train_step": {"first_call": 1, "shape": 1},
    },
    loop=Loop("train_step", 120),
)
