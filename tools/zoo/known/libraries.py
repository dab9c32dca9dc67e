"""Programs of the libraries that people train with, as their tutorials write them."""

from tools.environments import ZOO_BRAX, ZOO_KERNELS, ZOO_MAXTEXT
from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRIES = {
    # Brax: few long calls.
    "brax_ppo": Entry(
        projects=("brax",),
        says=(
            "Compiling is most of it. Networks and environments are built eagerly. Then five long calls of "
            "`training_epoch`, with an evaluation after each. Both compile twice, by Brax's own doing: "
            "`training_epoch` because its state is replicated by `device_put_replicated` at first and by `pmap` then, "
            "and `generate_eval_unroll` because rewards from `jnp.where(x, 1.0, 0.0)` are weakly typed in the first "
            "call."
        ),
        causes={
            "training_epoch": {"first_call": 1, "sharding": 1},
            "generate_eval_unroll": {"first_call": 1, "weak_type": 1},
        },
        findings=(
            Finding("eager_initialization"),
            Finding("two_shardings_at_start", "training_epoch"),
            Finding("weak_type_at_start", "generate_eval_unroll"),
        ),
        loop=Loop("training_epoch", 5),
        row=ZOO_BRAX,
    ),
    # Diffrax: short trajectories first, then whole ones.
    "diffrax_neural_ode": Entry(
        projects=("diffrax", "equinox", "optax"),
        says="Sound: two lengths of trajectory, so two programs of `train_step`, as Diffrax's tutorial does it.",
        causes={
            "trajectories": {"first_call": 1},
            "build": {"first_call": 1},
            "train_step": {"first_call": 1, "shape": 1},
        },
        loop=Loop("train_step", 120),
    ),
    # Equinox: sequences of any length.
    "equinox_gru": Entry(
        projects=("equinox", "optax"),
        says=(
            "Each batch is as long as its longest sequence: 24 batches have 15 lengths, and `train_step` compiles for "
            "each. Pad to a few lengths."
        ),
        causes={"train_step": {"first_call": 1, "shape": 14}},
        findings=(Finding("unbounded_shapes", "train_step"),),
        loop=Loop("train_step", 24),
    ),
    # Grain: the input is slower than the step.
    "grain_slow_input": Entry(
        projects=("grain", "optax", "scikit-learn"),
        says=(
            "Compiles once and trains in no time: nearly all of it is waiting for a pipeline that augments image by "
            "image in the same thread."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("input_bound", "train_step"),),
        loop=Loop("train_step", 2 * 1797 // 32),
    ),
    # Haiku: built operation by operation, a ragged last batch, and an evaluation by class.
    "haiku_digits": Entry(
        projects=("dm-haiku", "optax", "scikit-learn"),
        says=(
            "`network.init` runs without `jit`, so it compiles dozens of single operations. The last batch of an epoch "
            "is smaller: one program more, which is normal. `predict` gets as many rows as the test set has of each "
            "digit, 27, 28, 30, 31 or 33: five programs where one would do."
        ),
        causes={"update": {"first_call": 1, "shape": 1}, "predict": {"first_call": 1, "shape": 4}},
        findings=(Finding("eager_initialization"), Finding("unbounded_shapes", "predict")),
        loop=Loop("update", 40 * 24),
    ),
    # Keras: fit with validation.
    "keras_digits": Entry(
        projects=("keras", "scikit-learn"),
        says=(
            "Sound, as Keras's own guide: 38 steps an epoch, of which the last is smaller, so two programs of "
            "`train_step`; `test_step` has three, for its last batch has 12 rows in validation and 9 in the test."
        ),
        causes={"train_step": {"first_call": 1, "shape": 1}, "test_step": {"first_call": 1, "shape": 2}},
        loop=Loop("train_step", 1520),
    ),
    # Flax Linen: sound.
    "linen_cnn": Entry(
        projects=("flax", "optax", "scikit-learn"),
        says=(
            "Sound: initialized under one jit, batches of one size, and the test of each epoch by a function of its "
            "own."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}, "eval_step": {"first_call": 1}},
        loop=Loop("train_step", 12 * 30),
    ),
    # MaxText: a small model on its synthetic data.
    "maxtext_tiny": Entry(
        projects=("maxtext", "flax", "optax"),
        says=(
            "Sound, as MaxText ships it: it compiles `train_step` once, and marks its steps for JAX's profiler, by the "
            "name `train`. Starting and compiling take nearly all of so short a run."
        ),
        causes={"train_step": {"first_call": 1}},
        loop=Loop("train", 60),
        row=ZOO_MAXTEXT,
        variables={"DECOUPLE_GCLOUD": "TRUE", "JAXOBS_PEAK_FLOPS": "100e9"},
        marked=False,
    ),
    # Flax NNX: built as in its tutorials, eagerly.
    "nnx_dropout": Entry(
        projects=("flax", "optax", "scikit-learn"),
        says=(
            "The model is built eagerly, as the tutorials do: many single operations compile. Training and accuracy "
            "compile once each, because each of the two functions always gets the model in the same mode."
        ),
        causes={"train_step": {"first_call": 1}, "accuracy": {"first_call": 1}},
        findings=(Finding("eager_initialization"),),
        loop=Loop("train_step", 6 * 50),
    ),
    # NumPyro: an MCMC object for each group.
    "numpyro_groups": Entry(
        projects=("numpyro",),
        says=(
            "Each `MCMC(NUTS(model))` makes new functions, so the sampler recompiles for each of five groups, though "
            "model and shapes are the same. Make one MCMC object, with `jit_model_args=True`, and run it on each "
            "group. There is no loop of steps: the 600 iterations of a run are one program."
        ),
        causes={"_fori_collect_loop": {"first_call": 1, "static_argument": 4}},
        findings=(Finding("eager_initialization"), Finding("identity_hashed_static", "_fori_collect_loop")),
    ),
    # NumPyro: variational inference, with the loss read in each step.
    "numpyro_svi": Entry(
        projects=("numpyro", "scikit-learn"),
        says=(
            "`svi.init` runs without `jit` and compiles many single operations. Then one program; but `float(loss)` "
            "makes the host wait for the device in each step."
        ),
        causes={"update": {"first_call": 1}},
        findings=(Finding("eager_initialization"), Finding("host_sync", "update")),
        loop=Loop("update", 4000),
    ),
    # Optax: a step that is made anew for each epoch.
    "optax_decay": Entry(
        projects=("optax",),
        says=(
            "`train_step` is defined and jitted inside the loop over epochs, around an optimizer with a smaller "
            "learning rate: twelve functions, twelve programs. Use an Optax schedule, or inject the learning rate, "
            "with one step."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "new_function": 11}},
        findings=(Finding("recreated_functions", "train_step"),),
        loop=Loop("train_step", 12 * 64, within=12),
    ),
    # Optax: a schedule, whose value is computed inside of the step.
    "optax_schedule": Entry(
        projects=("optax",),
        says=(
            "Nothing to find: the learning rate of `optax.cosine_decay_schedule` is computed in the step from the "
            "count in the optimiser's state, so that one program serves all steps."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
        loop=Loop("train_step", 12 * 64),
    ),
    # Optimistix: a closure over each data set.
    "optimistix_sensors": Entry(
        projects=("optimistix", "equinox"),
        says=(
            "`residuals` is defined inside the loop and closes over the data, so `least_squares`, to which it is "
            "static, compiles the whole solver for each of eight sensors. Define it once and pass the data by `args`."
        ),
        causes={"least_squares": {"first_call": 1, "static_argument": 7}},
        findings=(Finding("identity_hashed_static", "least_squares"),),
        loop=Loop("least_squares", 8),
    ),
    # Orbax: saves while it trains, and restores.
    "orbax_checkpoints": Entry(
        projects=("orbax-checkpoint", "optax"),
        says=(
            "Saves every 30 steps in the background, waits and restores. Orbax commits what it restores to a device, "
            "unlike `init`, so `train_step` recompiles after the restore."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "placement": 1}},
        findings=(Finding("two_shardings_at_start", "train_step"),),
        loop=Loop("train_step", 180),
    ),
    # Penzai: its own trainer.
    "penzai_mlp": Entry(
        projects=("penzai", "optax"),
        says="Trains soundly, one program; `from_config` and the optimizer's state are built eagerly.",
        causes={"_stateful_trainer_step": {"first_call": 1}},
        findings=(Finding("eager_initialization"),),
        loop=Loop("_stateful_trainer_step", 600),
    ),
    # MJX: many small simulations at once.
    "mjx_pendulums": Entry(
        projects=("mujoco-mjx",),
        says="Sound: one program that makes the data and one that takes a step of all pendulums, called 300 times.",
        causes={"reset": {"first_call": 1}, "simulate": {"first_call": 1}},
        loop=Loop("simulate", 300),
        row=ZOO_BRAX,
        verdict="ok",
        first_try=FirstTry("half", "`watch` in the first of two runs, for a compilation on a busy machine"),
    ),
    # Optax: Python scalars in the optimizer's state.
    "optax_scalars": Entry(
        projects=("optax",),
        says=(
            "At step 100, a Python float takes the place of the float32 array that `inject_hyperparams` has put into "
            "the state. It is weakly typed, so `train_step` recompiles, once. Write `jnp.float32(...)`, or give Optax "
            "the schedule."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "weak_type": 1}},
        findings=(Finding("weak_type_at_start", "train_step"),),
        loop=Loop("train_step", 600),
        verdict="watch",
        first_try=FirstTry("half", "it said that `train_step` recompiled at its start, which was at step 100"),
    ),
    # Pallas: a kernel, interpreted.
    "pallas_softmax": Entry(
        projects=("jax",),
        says=(
            "Sound: one program. Interpreted, the kernel is a loop of XLA over its grid, so its time differs from that "
            "on a TPU."
        ),
        causes={"attend": {"first_call": 1}},
        loop=Loop("attend", 400),
        verdict="ok",
        first_try=FirstTry("right"),
    ),
    # Qwix: the same network in float32 and in int8.
    "qwix_quantized": Entry(
        projects=("qwix", "flax", "optax"),
        says=(
            "Building the model, and `quantize_model`, which calls it once, run eagerly and compile many single "
            "operations. `predict` compiles for the float32 model and for the quantized one, whose tree has int8 "
            "values and scales: two programs, as there should be."
        ),
        causes={"train_step": {"first_call": 1}, "predict": {"first_call": 1, "structure": 1}},
        findings=(Finding("eager_initialization"),),
        loop=Loop("train_step", 100),
        row=ZOO_KERNELS,
        first_try=FirstTry("half", "`fix` for eager operations that take most of a short run, by its own rule"),
    ),
    # Tokamax: its autotuner over the block sizes of a Pallas kernel.
    "tokamax_autotuned": Entry(
        projects=("tokamax",),
        says=(
            "Sound: the autotuner compiles nine candidates, on threads, to measure them, and drops them: an "
            "autotuner works this way, and no function recompiles. Then one program, with the fastest."
        ),
        causes={"forward": {"first_call": 1, "new_function": 8}, "apply": {"first_call": 1}},
        loop=Loop("apply", 200),
        row=ZOO_KERNELS,
        verdict="ok",
        first_try=FirstTry("wrong", "`fix` for the autotuner, whose candidates are functions created again"),
        differs={
            "time compile": "the autotuner compiles on other threads, which the stopwatch does not watch",
            "time other": "the rest of that",
        },
    ),
    # Tunix: fine-tuning by LoRA.
    "tunix_lora": Entry(
        projects=("google-tunix", "qwix", "flax", "optax"),
        says=(
            "Model and adapters are built eagerly, and the loss before and after is computed without `jit`. The "
            "evaluation before the first step gets parameters that are not placed on the mesh, so `_eval_step` "
            "compiles twice. Tunix marks its steps for JAX's profiler, by the name `train`."
        ),
        causes={"_train_step": {"first_call": 1}, "_eval_step": {"first_call": 1, "placement": 1}},
        findings=(
            Finding("eager_initialization"),
            Finding("two_shardings_at_start", "_eval_step"),
        ),
        loop=Loop("train", 90),
        row=ZOO_KERNELS,
        first_try=FirstTry("half", "`fix` for eager operations that take most of a short run, by its own rule"),
        differs={
            "count": "Tunix clears JAX's listeners when it ends, the stopwatch's too; jaxobs puts its own back",
            "time compile": "the stopwatch hears of no compile from then on",
            "time other": "the rest of that",
        },
    ),
}
