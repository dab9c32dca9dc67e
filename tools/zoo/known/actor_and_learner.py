"""JAX and Optax: a learner that waits for its actor."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "Compiles as it should. The learner needs milliseconds and waits for its actor nearly all the time: more "
        "actors, or several environments at once."
    ),
    causes={"learn": {"first_call": 1}, "policy": {"first_call": 1}},
    findings=(Finding("input_bound", "learn"),),
    loop=Loop("learn", 50),
)
