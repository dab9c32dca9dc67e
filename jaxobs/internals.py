"""The one module that knows JAX's insides, and asks its version never: it looks whether a thing is there.

It reads and replaces nothing. Each part that a JAX release may move is a *capability*: probed once, reported as
`jaxobs_capability`, and done without where it is gone. Written against JAX 0.6.0 to 0.12.0; the names it leans on:

- `jax._src.monitoring`: the lists of listeners, called synchronously on the thread that compiles;
- `jax._src.dispatch.LogElapsedTimeContextManager.__exit__`: its frame calls the listener at the end of a phase; `self`
  has `fun_name` and `start_time`, `exc_type` says whether the phase failed;
- `jax._src.pjit` (`jax._src.api` for `pmap` before 0.9): the frame named `cache_miss` has `fun`, `jit_info`, `args`,
  `kwargs`; `jit_trace` and `jit_lower` have `jit_func`;
- `jax._src.interpreters.pxla`: the frame that compiles has the lowered module as `computation` (`hlo` for `pmap`).

JAX is imported inside functions only, so that a script can still set its environment before its own import.
"""

from __future__ import annotations

import functools
import hashlib
import io
import operator
import os
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from jaxobs.guard import guarded

PHASE_OF_EVENT = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
CACHE_REQUEST = "/jax/compilation_cache/compile_requests_use_cache"
CACHE_HIT = "/jax/compilation_cache/cache_hits"
CACHE_WRITE = "/jax/compilation_cache/cache_misses"  # despite its name: counted when an entry is about to be written
CACHE_LOAD_SECONDS = "/jax/compilation_cache/cache_retrieval_time_sec"
CACHE_SAVED_SECONDS = "/jax/compilation_cache/compile_time_saved_sec"

_MOST_FRAMES = 256
_TRANSFORMS = {
    "_pjit_linearize": "linearize",
    "_pjit_jvp": "linearize",
    "_pjit_partial_eval": "linearize",
    "_pjit_transpose": "transpose",
    "_pjit_transpose_fancy": "transpose",
    "_pjit_batcher": "batch",
}
# Between the end of a compile and its own miss frame there is never a trace: one of these on the way up means that
# the miss frame above belongs to the outer function being traced.
_TRACING_FRAMES = frozenset(
    {
        "_infer_params",
        "_infer_params_impl",
        "_trace_for_jit",
        "trace_to_jaxpr",
        "trace_to_jaxpr_dynamic",
        "_create_pjit_jaxpr",
    }
)


# ---------------------------------------------------------------------------------------------- listeners


@dataclass(frozen=True, slots=True)
class Listeners:
    """Our callbacks. `started` is called when a phase begins (JAX 0.6.1 and later), `ended` when it ends."""

    event: Callable[..., None]
    ended: Callable[..., None]
    started: Callable[..., None]

    def pairs(self) -> list[tuple[str, Callable[..., None]]]:
        return [
            ("_event_listeners", self.event),
            ("_event_duration_secs_listeners", self.ended),
            ("_scalar_listeners", self.started),
        ]


def register(listeners: Listeners) -> int:
    """Adds those of our callbacks that JAX does not have; returns how many it lacked."""
    from jax._src import monitoring

    added = 0
    for name, callback in listeners.pairs():
        present = getattr(monitoring, name, None)
        if present is not None and callback not in present:
            present.append(callback)
            added += 1
    return added


def unregister(listeners: Listeners) -> None:
    """Removes our callbacks and nobody else's; those that somebody removed already are no error."""
    from jax._src import monitoring

    for name, callback in listeners.pairs():
        present = getattr(monitoring, name, None)
        if present is not None and callback in present:
            present.remove(callback)


def other_copies(listeners: Listeners) -> list[str]:
    """Files of other copies of jaxobs whose listeners JAX calls in this process."""
    from jax._src import monitoring

    ours = {callback for _, callback in listeners.pairs()}
    found = set()
    for name, _ in listeners.pairs():
        for callback in getattr(monitoring, name, None) or []:
            code = getattr(callback, "__code__", None) or getattr(getattr(callback, "__func__", None), "__code__", None)
            if callback not in ours and getattr(callback, "__module__", "").split(".")[0] == "jaxobs" and code:
                found.add(code.co_filename)
    return sorted(found)


# ------------------------------------------------------------------------------------------ reading a miss


@dataclass(slots=True)
class Phase:
    """The end of a phase, as its own frame tells it."""

    name: str
    """JAX's name of the function, without `jit(...)` around it."""
    started: float
    failed: bool


@dataclass(slots=True)
class Miss:
    """What the frames of JAX's miss path hold at the end of a compile. Live objects: read them now, keep none."""

    fun: Any = None
    """The function that was jitted; None where it is out of sight."""
    jit_info: Any = None
    args: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None
    transform: str | None = None
    eager: bool = False
    call_site: str | None = None
    module: Any = None
    """The lowered program (an MLIR module)."""


def phase_ended(frame: FrameType, duration: float, fun_name: str | None, now: float) -> Phase:
    """Name, start and outcome of the phase whose end called the listener with caller `frame`."""
    seen: FrameType | None = frame
    for _ in range(4):
        if seen is None:
            break
        if seen.f_code.co_name == "__exit__":
            local = seen.f_locals
            timer = local.get("self")
            name = fun_name or getattr(timer, "fun_name", None) or "<unknown>"
            started = getattr(timer, "start_time", None) or now - duration
            return Phase(plain_name(str(name)), started, local.get("exc_type") is not None)
        seen = seen.f_back
    return Phase(plain_name(fun_name or "<unknown>"), now - duration, False)


def plain_name(name: str) -> str:
    """`f` for `jit(f)`, `pmap(f)` and `f`: JAX's events spell one function in several ways."""
    for wrapper in ("jit(", "pmap(", "pjit("):
        if name.startswith(wrapper) and name.endswith(")"):
            return name[len(wrapper) : -1]
    return name


def read_miss(frame: FrameType | None) -> Miss:
    """Walks up from a listener's caller to JAX's miss frame and reads what was called with what."""
    miss = Miss()
    tracing = False
    flat = None
    for seen in _upwards(frame):
        code = seen.f_code
        name = code.co_name
        if not _is_jax(code.co_filename):
            if miss.call_site is None and not _is_plumbing(code.co_filename):
                miss.call_site = f"{code.co_filename}:{seen.f_lineno}"
            if miss.call_site is not None and (miss.fun is not None or tracing):
                break
            continue
        if name in _TRACING_FRAMES or name in ("jit_trace", "jit_lower"):
            tracing = True
        if tracing or miss.fun is not None:
            continue
        if miss.module is None and name in ("_cached_compilation", "from_hlo"):
            local = seen.f_locals
            miss.module = local.get("computation") if "computation" in local else local.get("hlo")
        elif name in _TRANSFORMS and miss.transform is None:
            miss.transform = _TRANSFORMS[name]
        elif name == "cache_miss":
            _read_miss_frame(seen, miss)
        elif name == "call_impl_cache_miss":
            local = seen.f_locals
            flat = local.get("args")
            miss.eager = _is_jax_program(local.get("jaxpr"))
    if flat is not None and (miss.transform is not None or miss.args is None):
        miss.args, miss.kwargs, miss.jit_info = flat, {}, None
    return miss


def _read_miss_frame(frame: FrameType, miss: Miss) -> None:
    local = frame.f_locals
    # Before 0.9 the miss frame of `pmap` knows the function as part of what it prepared.
    miss.fun = local["fun"] if "fun" in local else getattr(getattr(local.get("p"), "flat_fun", None), "f", None)
    miss.jit_info = local.get("jit_info")
    miss.args = local.get("args")
    miss.kwargs = local.get("kwargs")
    miss.eager = miss.eager or bool(getattr(miss.fun, "_apply_primitive", False))


def _is_jax_program(jaxpr: Any) -> bool:
    """Whether a traced program was made from one of JAX's own functions, by the file that it remembers."""
    debug_info = getattr(jaxpr, "debug_info", None) or getattr(getattr(jaxpr, "jaxpr", None), "debug_info", None)
    source = getattr(debug_info, "func_src_info", None)
    return isinstance(source, str) and _is_jax(source.rpartition(" at ")[2])


def belongs_to_a_compile(frame: FrameType | None) -> bool:
    """Whether the trace that ends here is made to be lowered, not merely for `eval_shape` or `make_jaxpr`."""
    for seen in _upwards(frame):
        name = seen.f_code.co_name
        if name in ("cache_miss", "jit_trace", "jit_lower") and _is_jax(seen.f_code.co_filename):
            return True
        if name in ("jit_eval_shape", "eval_shape", "make_jaxpr_f") and _is_jax(seen.f_code.co_filename):
            return False
    return True


def read_ahead_of_time(frame: FrameType | None) -> Miss | None:
    """The function and arguments of `jitted.lower(...)` or `.trace(...)`, while its frame is on the stack."""
    for seen in _upwards(frame):
        code = seen.f_code
        if code.co_name in ("jit_trace", "jit_lower") and _is_jax(code.co_filename):
            local = seen.f_locals
            jitted = local.get("jit_func")
            fun, info = getattr(jitted, "_fun", None), getattr(jitted, "_jit_info", None)
            if fun is None:
                return None
            return Miss(fun=fun, jit_info=info, args=local.get("args"), kwargs=local.get("kwargs"))
        if code.co_name == "cache_miss":
            return None
    return None


def cache_key(frame: FrameType | None) -> str | None:
    """The persistent cache's key, while `compile_or_get_cached` reports to the listener called from `frame`."""
    for seen, _ in zip(_upwards(frame), range(4), strict=False):
        key = seen.f_locals.get("cache_key")
        if isinstance(key, str):
            return key
    return None


def fingerprint(module: Any) -> str | None:
    """Short hash of a lowered program without its source locations: equal wherever the program is."""
    if module is None:
        return None
    try:
        program = _without_locations(module)
    except (ImportError, AttributeError, ValueError):  # slower by far, but the same everywhere too
        program = module.operation.get_asm(enable_debug_info=False).encode()
    return hashlib.sha256(program).hexdigest()[:12]


def _without_locations(module: Any) -> bytes:
    """Bytecode of a copy that was stripped of locations, as JAX makes it for the keys of its persistent cache."""
    from jax._src.lib.mlir import passmanager

    with module.context:
        copy = module.operation.clone().operation
        strip = passmanager.PassManager.parse("builtin.module(strip-debuginfo)")
        strip.enable_verifier(False)
        strip.run(copy)
        program = _bytecode(copy)
        if _POINTERS in program:
            _remove_pointers(copy)
            program = _bytecode(copy)
    return program


def _bytecode(operation: Any) -> bytes:
    output = io.BytesIO()
    operation.write_bytecode(output)
    return output.getvalue()


_POINTERS = b"CustomSPMDPartitioning"


def _remove_pointers(operation: Any) -> None:
    """Removes what differs from process to process: a custom partitioning is called by its address."""
    from jax._src.lib.mlir import ir

    def remove(each: Any) -> Any:
        if "call_target_name" in each.attributes and each.attributes["call_target_name"].value.encode() == _POINTERS:
            each.attributes["backend_config"] = ir.StringAttr.get("")
        return ir.WalkResult.ADVANCE

    operation.walk(remove)


def _upwards(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _folders(*names: str) -> tuple[str, ...]:
    found = []
    for name in names:
        module = sys.modules.get(name)
        for path in getattr(module, "__path__", None) or []:
            found.append(path + os.sep)
    return tuple(found)


_jax_folders: tuple[str, ...] = ()
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_DEMO_FOLDER = os.path.join(_OWN_FOLDER, "demo", "")
_INSTALLED = sysconfig.get_paths()
_LIBRARY_FOLDERS = tuple(
    {
        path + os.sep
        for path in (*_INSTALLED.values(), os.path.dirname(os.__file__))
        if path and path not in (_INSTALLED.get("scripts"), _INSTALLED.get("data"))
    }
)


def _is_jax(filename: str) -> bool:
    global _jax_folders
    if not _jax_folders:
        _jax_folders = _folders("jax", "jaxlib")
    return filename.startswith(_jax_folders)


def _is_plumbing(filename: str) -> bool:
    """Installed libraries and ourselves: no place where the user could change anything."""
    return filename.startswith((_OWN_FOLDER, "<frozen ", *_LIBRARY_FOLDERS)) and not filename.startswith(_DEMO_FOLDER)


def user_function(fun: Any) -> Any:
    """The user's function inside one that JAX made around it.

    `pmap` jits a closure over it since 0.10, and in 0.8 and 0.9 a bound method of an object that has it as `f`.
    """
    closure, code = getattr(fun, "__closure__", None), getattr(fun, "__code__", None)
    if code is None or not _is_jax(code.co_filename):
        return fun
    if hasattr(fun, "__self__"):
        return getattr(fun.__self__, "f", fun)
    for name, cell in zip(code.co_freevars, closure or (), strict=False):
        if name == "fun":
            return getattr(cell.cell_contents, "f", fun)
    return fun


def function_in_statics(fun: Any, jit_info: Any, args: tuple[Any, ...] | None) -> Any:
    """The user's function where a library jits one wrapper for all and passes the function as a static argument.

    Equinox does: the wrapper has the function's `__qualname__`, and the function is in the static argument.
    """
    code = getattr(fun, "__code__", None)
    if args is None or code is None or code.co_name == getattr(fun, "__name__", None):
        return fun
    names = getattr(jit_info, "static_argnames", None) or ()
    numbers = set(getattr(jit_info, "static_argnums", None) or ())
    numbers |= {n for n, name in enumerate(code.co_varnames[: code.co_argcount]) if name in names}
    for number in numbers:
        found = _function_called(fun.__qualname__, args[number], 5) if number < len(args) else None
        if found is not None:
            return found
    return fun


def _function_called(qualname: str, value: Any, depth: int) -> Any:
    if isinstance(value, tuple) and depth:
        found = (_function_called(qualname, each, depth - 1) for each in value[:16])
        return next((each for each in found if each is not None), None)
    return value if isinstance(value, types.FunctionType) and value.__qualname__ == qualname else None


def is_jax_function(fun: Any) -> bool:
    """Whether `fun` is JAX's own (`jnp.mean`, an eager primitive), no function of the user's."""
    module = getattr(fun, "__module__", None)
    if not isinstance(module, str) or module.split(".")[0] != "jax":
        return False
    return getattr(fun, "__wrapped__", None) is None


# ------------------------------------------------------------------------------------------ the wrapper's needs


@dataclass(frozen=True, slots=True)
class TraceState:
    """Lets the wrapper tell a call that executes from one made while another function is traced."""

    current: Callable[[Any], Any]
    holder: Any
    """`current(holder)` is the current trace of this thread. Two parts because the call is cheaper than a closure's."""
    eval_trace: Any
    """What the current trace is when nothing is traced."""
    staging: type
    """Type of the traces that write a program down instead of running it."""

    def executes(self) -> bool:
        """Whether calls on this thread run now: nothing is traced into a program around them.

        Under `grad` or `vmap` alone a call does run: these traces stand on the evaluation, not on a program.
        So it does in an eager `shard_map`, whose trace stands on nothing.
        """
        trace = self.current(self.holder)
        for _ in range(64):
            if trace is self.eval_trace:
                return True
            if trace is None or isinstance(trace, self.staging):
                return False
            trace = getattr(trace, "parent_trace", self.eval_trace)
        return False


def trace_state() -> TraceState:
    """What this JAX gives to tell tracing from executing; every call counts where it gives nothing."""
    try:
        from jax._src import core
        from jax._src.interpreters.partial_eval import DynamicJaxprTrace

        holder = getattr(core, "trace_state_strong_ref", None)
        if holder is not None:
            # The property's own function: half the price of the property, on the way of every instrumented call.
            current = vars(type(holder))["value"].fget
        else:
            holder, current = core.trace_ctx, operator.attrgetter("trace")
        state = TraceState(current, holder, core.eval_trace, DynamicJaxprTrace)
        if current(holder) is not core.trace_ctx.trace:
            raise AttributeError("trace_state_strong_ref")
    except (ImportError, AttributeError, KeyError, TypeError):
        return TraceState(lambda holder: None, None, None, type(None))
    return state


def is_jit_function(fun: Any) -> bool:
    """Whether `fun` is what `jax.jit` itself returns."""
    return type(fun) is type(_probe_jit())


@functools.cache
def _probe_jit() -> Any:
    """A `jax.jit` function that is never called, to know its type; making one compiles nothing."""
    import jax

    return jax.jit(_probed)


def _probed() -> None:
    """Stands in for a function to be jitted."""


def hide_frames(filename: str) -> None:
    """Tells JAX that frames of this file are no user code: neither in source locations nor in tracebacks."""
    from jax._src import source_info_util, traceback_util

    for module in (source_info_util, traceback_util):
        register_exclusion = getattr(module, "register_exclusion", None)
        if register_exclusion is not None:
            register_exclusion(filename)


# ------------------------------------------------------------------------------------- backends and settings


_complete = 0
"""Which of JAX's dictionaries of backends was seen complete, by its id; 0 for none."""


def backends_awake() -> bool:
    """Whether the program has initialised JAX's backends, all of them; asking never does, and never waits."""
    global _complete
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None:
        return False
    # `backends_are_initialized` waits for a lock that is held for as long as an initialisation takes: minutes, where
    # other hosts are waited for. A scrape, and whoever records meanwhile, must not wait with it.
    backends = getattr(bridge, "_backends", None)
    if backends is not None:
        if not backends:
            _complete = 0
        elif _complete != id(backends):
            # The CPU is there first, long before an accelerator that is still on its way.
            filling = getattr(getattr(bridge, "_backend_lock", None), "locked", bool)()
            _complete = 0 if filling else id(backends)
        return _complete != 0
    awake = getattr(bridge, "backends_are_initialized", None)
    return awake is not None and bool(awake())


def clients() -> list[Any]:
    """The backends that are awake; none is woken."""
    if not backends_awake():
        return []
    bridge = sys.modules["jax._src.xla_bridge"]
    backends = getattr(bridge, "_backends", None)
    if backends is None:
        import jax

        return [jax.local_devices()[0].client]
    return list(dict.fromkeys(list(backends.values())))


def default_platform() -> str | None:
    """JAX's default backend, once the program has woken it."""
    if not backends_awake():
        return None
    client = getattr(sys.modules["jax._src.xla_bridge"], "_default_backend", None)
    return getattr(client, "platform", None)


def process_index_and_count() -> tuple[int, int]:
    """Place of this process in its job; (0, 1) until the program has said otherwise."""
    distributed = sys.modules.get("jax._src.distributed")
    state = getattr(distributed, "global_state", None)
    index = getattr(state, "process_id", 0) or 0
    count = getattr(state, "num_processes", 1) or 1
    if count == 1:
        for client in clients():
            count = max(count, client.process_index() + 1, *(d.process_index + 1 for d in client.devices()))
            index = max(index, client.process_index())
    return index, count


def persistent_cache() -> tuple[bool, str | None]:
    """Whether compiles are looked up in a persistent cache, and its directory."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "config"):
        return False, None
    directory = getattr(jax.config, "jax_compilation_cache_dir", None)
    enabled = bool(getattr(jax.config, "jax_enable_compilation_cache", True))
    cache = getattr(sys.modules.get("jax._src.compilation_cache"), "_cache", None)
    if cache is not None:
        path = getattr(cache, "path", None)
        return enabled, str(path) if path is not None else directory
    return enabled and bool(directory), directory


def unsaved_reason(compile_seconds: float, wrote: bool) -> str | None:
    """Why a program that the persistent cache lacked was not stored in it, in JAX's order of reasons."""
    import jax

    if wrote:
        return None
    if process_index_and_count()[0] != 0:
        return "not_writer"
    if compile_seconds < jax.config.jax_persistent_cache_min_compile_time_secs:
        return "too_fast"
    if jax.config.jax_persistent_cache_min_entry_size_bytes > 0:
        return "too_small"
    return "error"


# -------------------------------------------------------------------------------------------- capabilities


def probe() -> dict[str, bool]:
    """What this JAX lets us see. Needs JAX to be imported; wakes nothing, compiles nothing."""
    found = dict.fromkeys(
        ("listeners", "phase_starts", "miss_frame", "trace_state", "backends", "persistent_cache"), False
    )
    with guarded("probe"):
        from jax._src import monitoring

        found["listeners"] = isinstance(getattr(monitoring, "_event_duration_secs_listeners", None), list)
        found["phase_starts"] = found["listeners"] and _names_in(
            "jax._src.dispatch", "LogElapsedTimeContextManager.__enter__", "record_scalar"
        )
    with guarded("probe"):
        found["miss_frame"] = _has_miss_frame()
    with guarded("probe"):
        found["trace_state"] = trace_state().eval_trace is not None
    with guarded("probe"):
        import jax._src.xla_bridge as bridge

        found["backends"] = hasattr(bridge, "_backends") and hasattr(bridge, "backends_are_initialized")
    with guarded("probe"):
        import jax._src.compilation_cache as cache

        found["persistent_cache"] = hasattr(cache, "_cache")
    return found


def _names_in(module: str, qualname: str, name: str) -> bool:
    owner: Any = sys.modules.get(module)
    for part in qualname.split("."):
        owner = getattr(owner, part, None)
    code = getattr(owner, "__code__", None)
    return code is not None and name in code.co_names


def _has_miss_frame() -> bool:
    """Whether `jax._src.pjit` still defines a `cache_miss` with the variables that we read."""
    import jax._src.pjit as pjit

    for value in vars(pjit).values():
        code = getattr(value, "__code__", None)
        for constant in getattr(code, "co_consts", ()):
            if getattr(constant, "co_name", None) == "cache_miss":
                return {"args", "kwargs"} <= set(constant.co_varnames) and {"fun", "jit_info"} <= set(
                    constant.co_freevars
                )
    return False


def thread_name() -> str:
    """Name of the current thread with its number, unique while it lives."""
    thread = threading.current_thread()
    return f"{thread.name} ({thread.ident})"
