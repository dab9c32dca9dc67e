"""JAX: a service on asyncio that gathers requests, and computes on a thread."""

from tools.zoo.entry import Entry, FirstTry

ENTRY = Entry(
    projects=("jax",),
    says=(
        "Sound: three sizes of batch, compiled before the first request. It waits for its clients most of the time, "
        "as services do. A task of the pool is not a step of a loop."
    ),
    causes={"predict": {"first_call": 1, "shape": 2}},
    verdict="ok",
    first_try=FirstTry("wrong", "`input_bound`, because the threads of the pool had nothing to do"),
)
