"""Brax: few long calls."""

from tools.environments import ZOO_BRAX
from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("brax",),
    says=(
        "Compiling is most of it. Networks and environments are built eagerly. Then five long calls of "
        "`training_epoch`, with an evaluation after each. Both compile twice, by Brax's own doing: `training_epoch` "
        "because its state is replicated by `device_put_replicated` at first and by `pmap` then, and "
        "`generate_eval_unroll` because rewards from `jnp.where(x, 1.0, 0.0)` are weakly typed in the first call."
    ),
    causes={
        "training_epoch": {"first_call": 1, "sharding": 1},
        "generate_eval_unroll": {"first_call": 1, "weak_type": 1},
    },
    findings=(
        Finding("eager_initialization"),
        Finding("two_shardings_at_start", "training_epoch"),
        Finding("weak_type_at_start", "generate_eval_unroll"),
    ),
    loop=Loop("training_epoch", 5),
    row=ZOO_BRAX,
)
