"""JAX and Optax: files that are slow to open (lnccbrown/LANfactory#120)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "Nearly all of the time goes into opening files, at the line that sleeps in `open_file`. `float(loss)` in each "
        "step looks like the fault, but without it nothing gets faster. Load the next file in a thread."
    ),
    causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
    findings=(Finding("input_bound", "train_step"),),
    loop=Loop("train_step", 80),
    verdict="fix",
    first_try=FirstTry("half", "`host_sync` as well, which was to save more seconds than the steps took"),
)
