"""Flax NNX: batches that another thread prepares ahead."""

from tools.zoo.entry import Entry, FirstTry, Loop

ENTRY = Entry(
    projects=("flax", "optax"),
    says=(
        "Sound: the model is built under one jit, and a thread prepares the batches, which takes less time than the "
        "steps, so the queue is hardly ever empty."
    ),
    causes={"build": {"first_call": 1}, "train_step": {"first_call": 1}},
    loop=Loop("train_step", 80),
    verdict="ok",
    first_try=FirstTry("right"),
)
