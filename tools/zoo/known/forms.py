"""Programs of other forms than a loop in one thread: services, threads, processes, many devices, scans."""

from tools.zoo.entry import Entry, Finding, FirstTry, Loop

ENTRIES = {
    # JAX: a service on asyncio that gathers requests, and computes on a thread.
    "asyncio_batcher": Entry(
        projects=("jax",),
        says=(
            "Sound: three sizes of batch, compiled before the first request. It waits for its clients most of the "
            "time, as services do. A task of the pool is not a step of a loop."
        ),
        causes={"predict": {"first_call": 1, "shape": 2}},
        verdict="ok",
        first_try=FirstTry("wrong", "`input_bound`, because the threads of the pool had nothing to do"),
    ),
    # JAX and Optax: reinforcement learning with the environment inside the jitted update.
    "cartpole_in_jax": Entry(
        projects=("optax",),
        says="Sound: one program of rollout and update, its state donated, and the result read every twentieth time.",
        causes={"init": {"first_call": 1}, "update": {"first_call": 1}},
        loop=Loop("update", 60),
        verdict="ok",
        first_try=FirstTry("right"),
    ),
    # JAX: a service that rests between requests, on a thread of the standard library's server.
    "http_service": Entry(
        projects=("jax",),
        says=(
            "Sound: three programs, compiled before the first request, and each batch is padded to one of them. The "
            "server is idle most of the time, because no requests come. A request is not a step of a loop."
        ),
        causes={"predict": {"first_call": 1, "shape": 2}},
        verdict="ok",
        first_try=FirstTry("right"),
    ),
    # JAX on eight devices: a mixture of experts by `shard_map`.
    "moe_eight_devices": Entry(
        projects=("optax",),
        says=(
            "The parameters begin uncommitted on one device and come back sharded over eight, so `train_step` compiles "
            "twice. Initialize with `out_shardings`."
        ),
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1, "placement": 1}},
        findings=(Finding("two_shardings_at_start", "train_step"),),
        loop=Loop("train_step", 200),
    ),
    # JAX: molecular dynamics, with `fori_loop` inside of jit and a print for each block.
    "molecules": Entry(
        projects=("jax",),
        says="Sound: one program. The energies are read after each block, which costs nothing next to a hundred steps.",
        causes={"simulate": {"first_call": 1}},
        loop=Loop("simulate", 40),
        verdict="ok",
        first_try=FirstTry("right"),
    ),
    # Flax Linen and Optax: the whole training is one jitted call.
    "scanned_training": Entry(
        projects=("flax", "optax"),
        says="Sound: one program, called once. There is no loop in Python, and nothing to mend.",
        causes={"train": {"first_call": 1}},
        verdict="ok",
        first_try=FirstTry(
            "wrong", "`watch`, because 44 s were unknown: imports, on a machine with six programs for each core"
        ),
    ),
    # Haiku and Optax: a sweep over learning rates under `vmap`.
    "swept_rates": Entry(
        projects=("dm-haiku", "optax"),
        says=(
            "Sound: initialized under one jit, one program for all learning rates, and nothing is read before the end."
        ),
        causes={"init": {"first_call": 1}, "sweep": {"first_call": 1}},
        loop=Loop("sweep", 100),
        verdict="ok",
        first_try=FirstTry("right"),
    ),
    # Equinox and Optax: training on a thread while the main thread waits.
    "training_thread": Entry(
        projects=("equinox", "optax"),
        says=("Sound: one program on another thread, with everything donated. The main thread waits by design."),
        causes={"build": {"first_call": 1}, "train_step": {"first_call": 1}},
        loop=Loop("train_step", 120),
        verdict="ok",
        first_try=FirstTry(
            "wrong", "`watch`, because 38 s were unknown: imports, on a machine with six programs for each core"
        ),
    ),
    # JAX in two processes, one of which loads more slowly.
    "two_processes": Entry(
        projects=("optax",),
        says="Sound, but process 1 takes 60 ms to load each batch, and process 0 waits for it in each step.",
        causes={"init": {"first_call": 1}, "train_step": {"first_call": 1}},
        findings=(Finding("input_bound", "train_step"), Finding("straggler")),
        loop=Loop("train_step", 400),
        processes=2,
    ),
}
