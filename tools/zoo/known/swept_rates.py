"""Haiku and Optax: a sweep over learning rates under `vmap`."""

from tools.zoo.entry import Entry, FirstTry, Loop

ENTRY = Entry(
    projects=("dm-haiku", "optax"),
    says="Sound: initialised under one jit, one program for all learning rates, and nothing is read before the end.",
    causes={"init": {"first_call": 1}, "sweep": {"first_call": 1}},
    loop=Loop("sweep", 100),
    verdict="ok",
    first_try=FirstTry("right"),
)
