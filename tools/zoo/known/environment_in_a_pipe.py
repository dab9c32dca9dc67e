"""JAX and Optax: a simulator that is slower than the learner (Farama-Foundation/HighwayEnv#103)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "The learner waits for the simulator's answer, at `readline`, for about nine tenths of its time. Run many "
        "environments at once, and give the policy a batch of what they show."
    ),
    causes={"act": {"first_call": 1}, "learn": {"first_call": 1}},
    findings=(Finding("input_bound", "learn"),),
    loop=Loop("learn", 320, within=2),
    verdict="fix",
    first_try=FirstTry("right"),
)
