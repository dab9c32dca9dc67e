"""Programs that wait, for input, for the host, or for nothing; that keep too much; or whose numbers run away."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRIES = {
    # JAX and Optax: a learner that waits for its actor.
    "actor_and_learner": Entry(
        projects=("optax",),
        says=(
            "Compiles as it should. The learner needs milliseconds and waits for its actor nearly all the time: more "
            "actors, or several environments at once."
        ),
        causes={"learn": {"first_call": 1}, "policy": {"first_call": 1}},
        findings=(Finding("input_bound", "learn"),),
        loop=Loop("learn", 50),
    ),
    # JAX and Optax: a NumPy routine that the compiled step calls back.
    "callback_in_step": Entry(
        projects=("optax",),
        says=(
            "More than four fifths of each step is `look_up`, point by point in Python, which `jax.pure_callback` runs "
            "while the device waits. Write it with `jnp.searchsorted`, or let NumPy look all points up at once."
        ),
        causes={"create": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("host_bound", "train_step"),),
        loop=Loop("train_step", 500),
        verdict="fix",
        first_try=FirstTry("wrong", "`ok`: the callback counted as steps, though its line was shown"),
    ),
    # JAX and Optax: a simulator that is slower than the learner (Farama-Foundation/HighwayEnv#103).
    "environment_in_a_pipe": Entry(
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
    ),
    # JAX and Optax: files that are slow to open (lnccbrown/LANfactory#120).
    "indexed_files": Entry(
        projects=("optax",),
        says=(
            "Nearly all of the time goes into opening files, at the line that sleeps in `open_file`. `float(loss)` in "
            "each step looks like the fault, but without it nothing gets faster. Load the next file in a thread."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("input_bound", "train_step"),),
        loop=Loop("train_step", 80),
        verdict="fix",
        first_try=FirstTry("half", "`host_sync` as well, which was to save more seconds than the steps took"),
    ),
    # Flax NNX: batches that another thread prepares ahead.
    "prefetching_thread": Entry(
        projects=("flax", "optax"),
        says=(
            "Sound: the model is built under one jit, and a thread prepares the batches, which takes less time than "
            "the steps, so the queue is hardly ever empty."
        ),
        causes={"build": {"first_call": 1}, "train_step": {"first_call": 1}},
        loop=Loop("train_step", 80),
        verdict="ok",
        first_try=FirstTry("right"),
    ),
    # JAX and Optax: a checkpoint after every step (deepchem/deepchem#458).
    "saved_every_step": Entry(
        projects=("optax",),
        says=(
            "More than three quarters of the time is the upload of the parameters after each step, at `bucket.put`. "
            "Save every hundredth step, or in another thread."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("host_bound", "train_step"),),
        loop=Loop("train_step", 120),
        verdict="fix",
        first_try=FirstTry("half", "`host_sync` as well, which was to save more seconds than the steps took"),
    ),
    # JAX and SciPy: fits by L-BFGS on the host.
    "scipy_minimize": Entry(
        projects=("jax",),
        says=(
            "Sound: one program for loss and gradient, and one for the data. SciPy needs both values on the host "
            "before it can say where to go next, so reading them in each step is not a fault."
        ),
        causes={"observe": {"first_call": 1}, "loss_and_gradient": {"first_call": 1}},
        loop=Loop("loss_and_gradient", 476, within=20),
        verdict="ok",
        first_try=FirstTry("wrong", "`host_sync` for 15 % of the time, most of which the calls themselves took"),
    ),
    # JAX and Optax: a step that is given all of the data, as a NumPy array.
    "whole_dataset": Entry(
        projects=("optax",),
        says=(
            "Each step copies the whole data set, 179 MiB in NumPy arrays, to the device, to pick 128 rows of it: four "
            "fifths of the time. `jax.device_put` it once, before the loop."
        ),
        causes={"create": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("host_bound", "train_step"),),
        loop=Loop("train_step", 200),
        verdict="fix",
        first_try=FirstTry("wrong", "`ok`: copying the arguments counted as steps"),
    ),
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
