"""NumPyro: variational inference, with the loss read in each step."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("numpyro", "scikit-learn"),
    says=(
        "`svi.init` runs without `jit` and compiles many single operations. Then one program; but `float(loss)` makes "
        "the host wait for the device in each step."
    ),
    causes={"update": {"first_call": 1}},
    findings=(Finding("eager_initialization"), Finding("host_sync", "update")),
    loop=Loop("update", 4000),
)
