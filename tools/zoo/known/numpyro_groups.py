"""NumPyro: an MCMC object for each group."""

from tools.zoo.entry import Entry, Finding

ENTRY = Entry(
    projects=("numpyro",),
    says=(
        "Each `MCMC(NUTS(model))` makes new functions, so the sampler recompiles for each of five groups, though "
        "model and shapes are the same. Make one MCMC object, with `jit_model_args=True`, and run it on each group. "
        "There is no loop of steps: the 600 iterations of a run are one program."
    ),
    causes={"_fori_collect_loop": {"first_call": 1, "static_argument": 4}},
    findings=(Finding("eager_initialization"), Finding("identity_hashed_static", "_fori_collect_loop")),
)
