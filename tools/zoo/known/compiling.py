"""Programs that compile too often, or that look as if they did."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRIES = {
    # JAX and Optax: caches that are cleared after each epoch (vllm-project/tpu-inference#2974, svenguenther/OLE#6).
    "cleared_caches": Entry(
        projects=("optax",),
        says=(
            "`jax.clear_caches()` at the end of each epoch throws both programs away, so each compiles eight times. "
            "Don't call it: two programs fill no memory. One fault, whatever was in the caches."
        ),
        causes={"train_step": {"first_call": 1, "cache_cleared": 7}, "error": {"first_call": 1, "cache_cleared": 7}},
        findings=(Finding("forgotten_programs"),),
        loop=Loop("train_step", 320, within=8),
        verdict="fix",
        first_try=FirstTry("half", "a finding for each of the two functions, which are one fault"),
    ),
    # Flax Linen: a static configuration that is made for each epoch.
    "config_made_anew": Entry(
        projects=("flax", "optax"),
        says=(
            "`Config` compares by identity and is made for each epoch, so `train_step`, to which it is static, "
            "compiles six times for the same program. Make it once, or a frozen dataclass."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "static_argument": 5}},
        findings=(Finding("identity_hashed_static", "train_step"),),
        loop=Loop("train_step", 240),
    ),
    # JAX: a gradient that is jitted for each of several runs (jax-ml/jax#1630).
    "gradients_made_anew": Entry(
        projects=("jax",),
        says=(
            "`jit(grad(lossf))` is made inside the loop over starts, so the same program compiles ten times, and each "
            "stays in memory. Make it once before the loop. That the update is NumPy on the host matters little here."
        ),
        causes={"lossf": {"first_call": 1, "new_function": 9}},
        findings=(Finding("recreated_functions", "lossf"),),
        loop=Loop("lossf", 300, within=10),
        verdict="fix",
        first_try=FirstTry("right"),
    ),
    # Equinox and Optax: images that grow in three stages.
    "growing_images": Entry(
        projects=("equinox", "optax"),
        says="Sound: three sizes of image on purpose, one after the other, so three programs, each used forty times.",
        causes={"build": {"first_call": 1}, "train_step": {"first_call": 1, "shape": 2}},
        loop=Loop("train_step", 120, within=3),
        verdict="ok",
        first_try=FirstTry("right"),
    ),
    # JAX: an array that grows by one row in each iteration (jax-ml/jax#4865, pyro-ppl/numpyro#118).
    "grown_by_concatenate": Entry(
        projects=("jax",),
        says=(
            "The step compiles once, but each `jnp.concatenate` outside of it has another size and compiles: 64 "
            "programs. Collect the samples in a list and stack them once, or sample in one `lax.scan`."
        ),
        causes={"metropolis": {"first_call": 1}},
        findings=(Finding("eager_recompiles"),),
        loop=Loop("metropolis", 64),
        verdict="fix",
        first_try=FirstTry("right"),
    ),
    # JAX: a program without `jit` (dunnolab/xland-minigrid#17, jax-ml/jax#20326).
    "nothing_jitted": Entry(
        projects=("jax",),
        says=(
            "Nothing is jitted: each turn dispatches some fifty single operations, after vmap has traced them again, "
            "and the host's dispatch is all of the time. `jax.jit` around the vmapped step makes it a hundred times as "
            "fast."
        ),
        causes={},
        findings=(Finding("unjitted_operations"),),
        verdict="fix",
        first_try=FirstTry(
            "wrong", "the cost of compiling alone; the rest of the time, which dispatching takes, was unknown"
        ),
        loop=Loop("<eager>", 5000),
        differs=dict.fromkeys(
            ("finding eager_initialization",),
            "Where compiling the operations takes more than a second, that is told, too.",
        ),
    ),
    # JAX and Optax: L-BFGS, whose state changes its types.
    "pinn_lbfgs": Entry(
        projects=("optax",),
        says=(
            "`optax.lbfgs().init` leaves counts and errors of the line search weakly typed, and `update` returns them "
            "strongly typed: `step`, which takes seconds to compile, compiles twice. Cast the state after `init`."
        ),
        causes={"init": {"first_call": 1}, "step": {"first_call": 1, "weak_type": 1}},
        findings=(Finding("weak_type_at_start", "step"),),
        loop=Loop("step", 120),
    ),
    # JAX and Optax: a static configuration of which one field changes.
    "static_temperature": Entry(
        projects=("optax",),
        says=(
            "The temperature falls in each step and is a field of a static `Config`, so `train_step` compiles for each "
            "of 40 steps. Pass the temperature as an array, and leave the rest static."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "static_argument": 39}},
        findings=(Finding("static_values", "train_step"),),
        loop=Loop("train_step", 40),
    ),
    # JAX: a loop outside of jit whose body is the method of a new object each time (jax-ml/jax#1710).
    "walkers": Entry(
        projects=("jax",),
        says=(
            "`fori_loop` outside of jit knows its body by identity, and `walker.step` of a new object is a new "
            "function: each walk compiles the same loop. Use a function of the module, in one jitted function, or "
            "`vmap` the walks."
        ),
        causes={},
        findings=(Finding("eager_recompiles"),),
        loop=Loop("scan", 22, within=2),
        verdict="fix",
        first_try=FirstTry("half", "the finding, and no loop"),
    ),
    # JAX and Optax: a state that begins with a Python number.
    "weak_scores": Entry(
        projects=("optax",),
        says=(
            "The score begins as the Python number 0.0, which is weakly typed, and comes back as `float32`: "
            "`train_step` compiles twice. Begin with `jnp.float32(0)`."
        ),
        causes={"train_step": {"first_call": 1, "weak_type": 1}},
        findings=(Finding("weak_type_at_start", "train_step"),),
        loop=Loop("train_step", 1000),
    ),
}
