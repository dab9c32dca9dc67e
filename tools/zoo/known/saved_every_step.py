"""JAX and Optax: a checkpoint after every step (deepchem/deepchem#458)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "More than three quarters of the time is the upload of the parameters after each step, at `bucket.put`. Save "
        "every hundredth step, or in another thread. Without Orbax or a phase it is a wait in the loop."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("input_bound", "train_step"),),
    loop=Loop("train_step", 120),
    verdict="fix",
    first_try=FirstTry("half", "`host_sync` as well, which was to save more seconds than the steps took"),
)
