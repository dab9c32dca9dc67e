"""JAX on eight devices: a mixture of experts by `shard_map`."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "The parameters begin uncommitted on one device and come back sharded over eight, so `train_step` compiles "
        "twice. Initialise with `out_shardings`."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "placement": 1}},
    findings=(Finding("two_shardings_at_start", "train_step"),),
    loop=Loop("train_step", 200),
)
