"""Events of a checkpoint that Orbax, and Flax's older checkpoints, report to `jax.monitoring`, as of Orbax 0.12.

Saves and loads are reported on the primary process; an event of that process alone has no equal on the others.
"""

SAVE_BEGINS = ("/jax/orbax/write/async/start", "/jax/orbax/write/start")

SAVE_COMPLETE = "/jax/orbax/write/success"

SAVE_THREAD_ENDS = "/jax/checkpoint/write/async/thread_duration_sec"
"""On every process and in every version; the save may not be complete on the primary one, some milliseconds long."""

LETS_CALLER_GO = "/jax/checkpoint/write/async/blocking_duration_secs"

OPERATIONS = {
    LETS_CALLER_GO: "save",
    "/jax/orbax/write/total_duration_secs": "save",
    "/jax/checkpoint/write/async/total_duration_secs": "save_async",
    "/jax/orbax/read/total_duration_secs": "restore",
    "/jax/orbax/read/async/total_duration_secs": "restore",
    "/jax/checkpoint/read/durations_sec": "restore",
    "/jax/checkpoint/write/wait_for_prev_duration_secs": "wait",
}
"""Operation of each duration. Durations that repeat another, or a part of it, are left out."""

SIZES = {"/jax/orbax/write/gbytes": "save", "/jax/checkpoint/read/gbytes": "restore"}
"""Operation of each size, in GiB of whole arrays: once for each item of a checkpoint."""

BLOCKING = frozenset(
    (
        *(name for name in OPERATIONS if "/async/total" not in name),
        "/jax/orbax/read/async/blocking_duration_secs",
        "/jax/orbax/write/blocking_wait_prev_duration_secs",
        "/jax/checkpoint/write/durations_sec",
        "/jax/checkpoint/sync_global_devices_duration_sec",
    )
)
"""Durations that held up the thread which reports them."""
