"""JAX and Optax: caches that are cleared after each epoch (vllm-project/tpu-inference#2974, svenguenther/OLE#6)."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRY = Entry(
    projects=("optax",),
    says=(
        "`jax.clear_caches()` at the end of each epoch throws both programs away, so each compiles eight times. Don't "
        "call it: two programs fill no memory. One fault, whatever was in the caches."
    ),
    causes={"train_step": {"first_call": 1, "cache_cleared": 7}, "error": {"first_call": 1, "cache_cleared": 7}},
    findings=(Finding("forgotten_programs"),),
    loop=Loop("train_step", 320, within=8),
    verdict="fix",
    first_try=FirstTry("half", "a finding for each of the two functions, which are one fault"),
)
