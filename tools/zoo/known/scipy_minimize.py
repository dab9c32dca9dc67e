"""JAX and SciPy: fits by L-BFGS on the host."""

from tools.zoo.entry import Entry, FirstTry, Loop

ENTRY = Entry(
    projects=("jax",),
    says=(
        "Sound: one program for loss and gradient, and one for the data. SciPy needs both values on the host before it "
        "can say where to go next, so reading them in each step is not a fault."
    ),
    causes={"observe": {"first_call": 1}, "loss_and_gradient": {"first_call": 1}},
    loop=Loop("loss_and_gradient", 476, within=20),
    verdict="ok",
    first_try=FirstTry("wrong", "`host_sync` for 15 % of the time, most of which the calls themselves took"),
)
