"""JAX: a service that rests between requests, on a thread of the standard library's server."""

from tools.zoo.entry import Entry, FirstTry

ENTRY = Entry(
    projects=("jax",),
    says=(
        "Sound: three programs, compiled before the first request, and each batch is padded to one of them. It rests "
        "most of its time because nobody asks. A request is not a step of a loop."
    ),
    causes={"predict": {"first_call": 1, "shape": 2}},
    verdict="ok",
    first_try=FirstTry("right"),
)
