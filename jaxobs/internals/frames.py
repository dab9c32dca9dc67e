"""Contents of JAX's frames while they are on the stack: whose phase ended, what was called with what.

- `jax._src.dispatch.LogElapsedTimeContextManager.__exit__` calls the listener at the end of a phase; its `self` has
  `fun_name` and `start_time`, `exc_type` says whether the phase failed;
- in `jax._src.pjit` (`jax._src.api` for `pmap` before 0.9) the frame named `cache_miss` has `fun`, `jit_info`, `args`,
  `kwargs`; `jit_trace` and `jit_lower` have `jit_func`;
- in `jax._src.interpreters.pxla` the frame that compiles has the lowered module as `computation` (`hlo` for `pmap`).
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from jaxobs.internals.source_files import in_library, is_jax, is_plumbing, passes_on, shown

_MOST_FRAMES = 256

_TRANSFORMS = {
    "_pjit_linearize": "linearize", "_pjit_jvp": "linearize", "_pjit_partial_eval": "linearize",
    "_pjit_transpose": "transpose", "_pjit_transpose_fancy": "transpose", "_pjit_batcher": "batch",
}  # fmt: skip

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


@dataclass(slots=True)
class Phase:
    """The end of a phase, as its own frame tells it."""

    name: str
    """JAX's name of the function, without `jit(...)` around it."""
    started: float
    failed: bool
    error: BaseException | None = None
    """The error of the call. Live: read it now, do not keep it."""


@dataclass(slots=True)
class Miss:
    """Contents of the frames of JAX's miss path at the end of a compile. Live objects: read them now, keep none."""

    fun: Any = None
    """The function that was jitted; None where it is out of sight."""
    jit_info: Any = None
    args: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None
    transform: str | None = None
    eager: bool = False
    call_site: str | None = None
    library_sites: list[str] = field(default_factory=list)
    """The lines of installed libraries between the user's line and JAX, the innermost first."""
    module: Any = None
    """The lowered program (an MLIR module)."""
    executable: Any = None
    """The loaded executable of the backend that the compiler made or the cache gave."""
    mapped: tuple[int, ...] | None = None
    """For `pmap`: the numbers of its static arguments; `fun`, `args` and `kwargs` are the user's."""
    placed: bool = True
    """Whether JAX compiles by where the arguments are; `pmap` before 0.8 moves them instead."""
    layouts: Mapping[int, str] | None = None
    """Layouts of arguments that are not the usual, by number of the leaf."""


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
            error = local.get("exc_value")
            return Phase(
                plain_name(str(name)), started, local.get("exc_type") is not None,
                error if isinstance(error, BaseException) else None,
            )  # fmt: skip
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
        if not is_jax(code.co_filename):
            if miss.call_site is None:
                if not is_plumbing(code.co_filename):
                    miss.call_site = f"{shown(code.co_filename)}:{seen.f_lineno}"
                elif (path := in_library(code.co_filename)) is not None and not passes_on(path):
                    miss.library_sites.append(f"{path}:{seen.f_lineno}")
            if miss.call_site is not None and (miss.fun is not None or tracing):
                break
            continue
        if name in _TRACING_FRAMES or name in ("jit_trace", "jit_lower"):
            tracing = True
        if miss.fun is not None and not tracing and name == "wrapped" and code.co_filename.endswith("pmap.py"):
            _read_pmap_frame(seen, miss)
        if tracing or miss.fun is not None:
            continue
        if name in ("_cached_compilation", "from_hlo"):
            local = seen.f_locals
            if miss.module is not None:
                miss.layouts = miss.layouts or _layouts(local)
                continue
            miss.module = local.get("computation") if "computation" in local else local.get("hlo")
            miss.executable = local.get("xla_executable", local.get("compiled"))
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


def read_begun(frame: FrameType | None) -> tuple[Any, str | None]:
    """Returns function and user's line of a compilation that begins in `frame`; None for what is out of sight."""
    miss = Miss()
    for seen in _upwards(frame):
        code = seen.f_code
        if not is_jax(code.co_filename):
            if not is_plumbing(code.co_filename):
                return miss.fun, f"{shown(code.co_filename)}:{seen.f_lineno}"
        elif miss.fun is None and code.co_name == "cache_miss":
            _read_miss_frame(seen, miss)
        elif miss.fun is None and code.co_name in ("jit_trace", "jit_lower"):
            miss.fun = getattr(seen.f_locals.get("jit_func"), "_fun", None)
    return miss.fun, None


def _read_miss_frame(frame: FrameType, miss: Miss) -> None:
    local = frame.f_locals
    # Before 0.9 the miss frame of `pmap` knows the function as part of what it prepared.
    miss.fun = local["fun"] if "fun" in local else getattr(getattr(local.get("p"), "flat_fun", None), "f", None)
    miss.jit_info = local.get("jit_info")
    miss.args = local.get("args")
    miss.kwargs = local.get("kwargs")
    prepare = local.get("prepare_pmap_fn")  # `pmap` before 0.8
    if isinstance(prepare, functools.partial) and len(prepare.args) > 3:
        miss.fun, miss.mapped, miss.placed = prepare.args[0], tuple(prepare.args[3]), False
    miss.eager = miss.eager or bool(getattr(miss.fun, "_apply_primitive", False))


def _read_pmap_frame(frame: FrameType, miss: Miss) -> None:
    """Since JAX 0.8 `pmap` is a function that calls a jitted one: its frame has what the user gave."""
    local = frame.f_locals
    infer = local.get("infer_params")
    cells = dict(
        zip(
            getattr(getattr(infer, "__code__", None), "co_freevars", ()),
            getattr(infer, "__closure__", None) or (),
            strict=False,
        )
    )
    statics, mapped = cells.get("static_broadcasted_tuple"), cells.get("wrapped_fun") or cells.get("f")
    if mapped is not None:
        miss.fun = getattr(mapped.cell_contents, "f", mapped.cell_contents)
    miss.args, miss.kwargs = local.get("args"), local.get("kwargs")
    miss.mapped = tuple(statics.cell_contents) if statics is not None else ()


def _layouts(local: Mapping[str, Any]) -> dict[int, str] | None:
    """Layouts of the arguments that the program keeps, where they are not the usual, from the frame that compiles."""
    layouts, kept = local.get("in_layouts"), local.get("kept_var_idx")
    if not layouts or not any(each is not None for each in layouts):
        return None
    places = sorted(kept) if kept is not None and len(kept) == len(layouts) else range(len(layouts))
    found = {place: each for place, each in zip(places, layouts, strict=True) if each is not None}
    return {place: _layout_text(each) for place, each in found.items()}


def _layout_text(layout: Any) -> str:
    """The order of the axes, and the tiles that an accelerator cuts them into."""
    if not hasattr(layout, "major_to_minor"):
        return str(layout)
    rest = [(name, getattr(layout, name, None)) for name in ("tiling", "_tiling", "sub_byte_element_size_in_bits")]
    told = dict.fromkeys(f" {name.lstrip('_')}={value}" for name, value in rest if value)
    return f"major_to_minor={layout.major_to_minor}{''.join(told)}"


def _is_jax_program(jaxpr: Any) -> bool:
    """Returns whether a traced program was made from one of JAX's own functions, by the file that it remembers."""
    debug_info = getattr(jaxpr, "debug_info", None) or getattr(getattr(jaxpr, "jaxpr", None), "debug_info", None)
    source = getattr(debug_info, "func_src_info", None)
    return isinstance(source, str) and is_jax(source.rpartition(" at ")[2])


def belongs_to_a_compile(frame: FrameType | None) -> bool:
    """Returns whether the trace that ends here is made to be lowered, not merely for `eval_shape` or `make_jaxpr`."""
    for seen in _upwards(frame):
        name = seen.f_code.co_name
        if name in ("cache_miss", "jit_trace", "jit_lower") and is_jax(seen.f_code.co_filename):
            return True
        if name in ("jit_eval_shape", "eval_shape", "make_jaxpr_f") and is_jax(seen.f_code.co_filename):
            return False
    return True


def read_ahead_of_time(frame: FrameType | None) -> Miss | None:
    """The function and arguments of `jitted.lower(...)` or `.trace(...)`, while its frame is on the stack."""
    for seen in _upwards(frame):
        code = seen.f_code
        if code.co_name in ("jit_trace", "jit_lower") and is_jax(code.co_filename):
            local = seen.f_locals
            jitted = local.get("jit_func")
            fun, info = getattr(jitted, "_fun", None), getattr(jitted, "_jit_info", None)
            if fun is None:
                return None
            return Miss(fun=fun, jit_info=info, args=local.get("args"), kwargs=local.get("kwargs"))
        if code.co_name == "cache_miss":
            return None
    return None


def _upwards(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back
