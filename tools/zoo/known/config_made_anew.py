"""Flax Linen: a static configuration that is made for each epoch."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("flax", "optax"),
    says=(
        "`Config` compares by identity and is made for each epoch, so `train_step`, to which it is static, compiles "
        "six times for the same program. Make it once, or a frozen dataclass."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "static_argument": 5}},
    findings=(Finding("identity_hashed_static", "train_step"),),
    loop=Loop("train_step", 240),
)
