"""Knowledge of JAX's private modules, which no other room has.

It reads and replaces nothing. It never asks for JAX's version: it looks whether a thing is there. Each part that a
release may move is a *capability*: probed once, reported as `jaxobs_capability`, and done without where it is gone.
Written against JAX 0.6.0 to 0.12.0. JAX is imported inside functions only, so that a script can still set its
environment before its own import.
"""

from jaxobs.internals import (
    cache_keys, cache_lookups, cache_state, checkpoint_waits, context, distributed, executables, flax_graphs,
    orbax_events, post_hook, scopes,
)  # fmt: skip
from jaxobs.internals.backends import (
    UNTOLD, allocator, backends_awake, clients, computing, default_platform, device_name, process_index_and_count,
)  # fmt: skip
from jaxobs.internals.cache_lookups import Lookup
from jaxobs.internals.cache_state import persistent_cache
from jaxobs.internals.calls import Call, Held, called
from jaxobs.internals.capabilities import probe
from jaxobs.internals.context import options
from jaxobs.internals.fastpath import sees_falls
from jaxobs.internals.frames import (
    Miss, Phase, belongs_to_a_compile, phase_ended, plain_name, read_ahead_of_time, read_begun, read_miss,
)  # fmt: skip
from jaxobs.internals.listeners import (
    CACHE_HIT, CACHE_LOAD_SECONDS, CACHE_REQUEST, CACHE_SAVED_SECONDS, CACHE_WRITE, PHASE_OF_EVENT, Listeners,
    other_copies, register, unregister,
)  # fmt: skip
from jaxobs.internals.programs import (
    Identity, fingerprint, identify, is_small, result_shapes, spans_processes,
)  # fmt: skip
from jaxobs.internals.branches import Selected, selected
from jaxobs.internals.repetitions import repeated
from jaxobs.internals.source_files import exported, is_jax_function, user_function
from jaxobs.internals.tracing import forget_trace, running_trace
from jaxobs.internals.tracing import TraceState, hide_frames, is_jit_function, own_jit, programs_of, trace_state
from jaxobs.internals.context import tree_util
