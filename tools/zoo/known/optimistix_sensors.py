"""Optimistix: a closure over each data set."""

from tools.zoo.entry import Entry, Finding, Loop

ENTRY = Entry(
    projects=("optimistix", "equinox"),
    says=(
        "`residuals` is defined inside the loop and closes over the data, so `least_squares`, to which it is static, "
        "compiles the whole solver for each of eight sensors. Define it once and pass the data by `args`."
    ),
    causes={"least_squares": {"first_call": 1, "static_argument": 7}},
    findings=(Finding("identity_hashed_static", "least_squares"),),
    loop=Loop("least_squares", 8),
)
