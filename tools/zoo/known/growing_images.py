"""Equinox and Optax: images that grow in three stages."""

from tools.zoo.entry import Entry, FirstTry, Loop

ENTRY = Entry(
    projects=("equinox", "optax"),
    says="Sound: three sizes of image on purpose, one after the other, so three programs, each used forty times.",
    causes={"build": {"first_call": 1}, "train_step": {"first_call": 1, "shape": 2}},
    loop=Loop("train_step", 120, within=3),
    verdict="ok",
    first_try=FirstTry("right"),
)
