"""Equinox and Optax: training on a thread while the main thread waits."""

from tools.zoo.entry import Entry, FirstTry, Loop

ENTRY = Entry(
    projects=("equinox", "optax"),
    says=("Sound: one program on another thread, with everything donated. That the main thread waits is its purpose."),
    causes={"build": {"first_call": 1}, "train_step": {"first_call": 1}},
    loop=Loop("train_step", 120),
    verdict="ok",
    first_try=FirstTry(
        "wrong", "`watch`, because 38 s were unknown: imports, on a machine with six programs for each core"
    ),
)
