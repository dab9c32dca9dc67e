"""Programs that keep too much, or whose numbers run away."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRIES = {
    # JAX and Optax: NumPy copies that are kept.
    "kept_activations": Entry(
        projects=("optax",),
        says=(
            "Keeps the activations of each batch as a NumPy array, 2 MiB in each step: the process grows by a "
            "gigabyte. Keep a sample, or write them to a file."
        ),
        causes={"create": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("host_memory_leak", "train_step"),),
        loop=Loop("train_step", 500),
        first_try=FirstTry("wrong", "`ok`: the first of five samples also had the start, and so grew faster"),
    ),
    # JAX and Optax: a list of arrays that grows.
    "kept_gradients": Entry(
        projects=("optax",),
        says="Compiles as it should, but keeps the gradients of each step, half a MiB: memory grows with the steps.",
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("array_leak"),),
        loop=Loop("train_step", 690),
        variables={"JAXOBS_SAMPLE_INTERVAL": "0.15"},
    ),
    # JAX and Optax: a loss that becomes NaN, inside a scan over an epoch.
    "nan_in_scan": Entry(
        projects=("optax",),
        says=(
            "Compiles as it should, but the flow diverges within the first epochs. All losses of an epoch come back as "
            "one array, and all are NaN."
        ),
        causes={"create": {"first_call": 1}, "train_epoch": {"first_call": 1}},
        findings=(Finding("nonfinite_values"),),
        loop=Loop("train_epoch", 120),
        verdict="fix",
        nonfinite=True,
        first_try=FirstTry("wrong", "`ok`: only scalars were looked at"),
    ),
    # Flax NNX: training that diverges.
    "nan_loss": Entry(
        projects=("flax", "optax"),
        says="Compiles as it should, but the learning rate is far too high: the loss overflows within a few steps.",
        causes={"build": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("nonfinite_values"),),
        loop=Loop("train_step", 400),
        nonfinite=True,
    ),
}
