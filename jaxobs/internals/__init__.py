"""Knowledge of JAX's private modules, which no other room has.

It reads and replaces nothing. It never asks for JAX's version: it looks whether a thing is there. Each part that a
release may move is a *capability*: probed once, reported as `jaxobs_capability`, and done without where it is gone.
Written against JAX 0.6.0 to 0.12.0. JAX is imported inside functions only, so that a script can still set its
environment before its own import.
"""

from jaxobs.internals import cache_keys as cache_keys
from jaxobs.internals import cache_lookups as cache_lookups
from jaxobs.internals import cache_state as cache_state
from jaxobs.internals import checkpoint_waits as checkpoint_waits
from jaxobs.internals import context as context
from jaxobs.internals import distributed as distributed
from jaxobs.internals import executables as executables
from jaxobs.internals import flax_graphs as flax_graphs
from jaxobs.internals import orbax_events as orbax_events
from jaxobs.internals import post_hook as post_hook
from jaxobs.internals import scopes as scopes
from jaxobs.internals.backends import UNTOLD as UNTOLD
from jaxobs.internals.backends import allocator as allocator
from jaxobs.internals.backends import backends_awake as backends_awake
from jaxobs.internals.backends import clients as clients
from jaxobs.internals.backends import computing as computing
from jaxobs.internals.backends import default_platform as default_platform
from jaxobs.internals.backends import device_name as device_name
from jaxobs.internals.backends import process_index_and_count as process_index_and_count
from jaxobs.internals.cache_lookups import Lookup as Lookup
from jaxobs.internals.cache_state import persistent_cache as persistent_cache
from jaxobs.internals.calls import Call as Call
from jaxobs.internals.calls import Held as Held
from jaxobs.internals.calls import called as called
from jaxobs.internals.capabilities import probe as probe
from jaxobs.internals.configuration import options as options
from jaxobs.internals.fastpath import sees_falls as sees_falls
from jaxobs.internals.frames import Miss as Miss
from jaxobs.internals.frames import Phase as Phase
from jaxobs.internals.frames import belongs_to_a_compile as belongs_to_a_compile
from jaxobs.internals.frames import phase_ended as phase_ended
from jaxobs.internals.frames import plain_name as plain_name
from jaxobs.internals.frames import read_ahead_of_time as read_ahead_of_time
from jaxobs.internals.frames import read_begun as read_begun
from jaxobs.internals.frames import read_miss as read_miss
from jaxobs.internals.listeners import CACHE_HIT as CACHE_HIT
from jaxobs.internals.listeners import CACHE_LOAD_SECONDS as CACHE_LOAD_SECONDS
from jaxobs.internals.listeners import CACHE_REQUEST as CACHE_REQUEST
from jaxobs.internals.listeners import CACHE_SAVED_SECONDS as CACHE_SAVED_SECONDS
from jaxobs.internals.listeners import CACHE_WRITE as CACHE_WRITE
from jaxobs.internals.listeners import PHASE_OF_EVENT as PHASE_OF_EVENT
from jaxobs.internals.listeners import Listeners as Listeners
from jaxobs.internals.listeners import other_copies as other_copies
from jaxobs.internals.listeners import register as register
from jaxobs.internals.listeners import unregister as unregister
from jaxobs.internals.programs import fingerprint as fingerprint
from jaxobs.internals.programs import fingerprint_and_whether_in_key as fingerprint_and_whether_in_key
from jaxobs.internals.programs import repeated as repeated
from jaxobs.internals.programs import result_shapes as result_shapes
from jaxobs.internals.programs import spans_processes as spans_processes
from jaxobs.internals.source_files import is_jax_function as is_jax_function
from jaxobs.internals.source_files import user_function as user_function
from jaxobs.internals.traces import forget_trace as forget_trace
from jaxobs.internals.traces import running_trace as running_trace
from jaxobs.internals.tracing import TraceState as TraceState
from jaxobs.internals.tracing import hide_frames as hide_frames
from jaxobs.internals.tracing import is_jit_function as is_jit_function
from jaxobs.internals.tracing import own_jit as own_jit
from jaxobs.internals.tracing import programs_of as programs_of
from jaxobs.internals.tracing import trace_state as trace_state
from jaxobs.internals.trees import tree_util as tree_util
