"""JAX and Optax: a loss that becomes NaN, inside a scan over an epoch."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "Compiles as it should, but the flow diverges within the first epochs. All losses of an epoch come back as one "
        "array, and all are NaN."
    ),
    causes={"create": {"first_call": 1}, "train_epoch": {"first_call": 1}},
    findings=(Finding("nonfinite_values"),),
    loop=Loop("train_epoch", 120),
    verdict="fix",
    nonfinite=True,
    first_try=FirstTry("wrong", "`ok`: only scalars were looked at"),
)
