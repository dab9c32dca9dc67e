"""Installed packages, or libraries of the system, are of releases that do not fit."""

from __future__ import annotations

from jaxobs.ops.diagnosis.api_changes import MISSING
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

_OF_LIBRARY = (
    r"(?:site|dist)-packages/(?![^\n]*jax/_src/deprecations)[^\n]*"
    r"(?:\n[^\n]*(?:jax/_src/deprecations|lazy_loader/__init__|transformers/utils/import_utils)\.py)?\Z"
)
"""A library's own file is the innermost one, save for what only answers for names that a module does not have."""
_CALLS_JAX = r"(?:site|dist)-packages/(?!jax(?:lib)?/)[^\n]*(?:\n[^\n]*(?:site|dist)-packages/jax(?:lib)?/[^\n]*)*\Z"
"""A library's own file is the innermost one, save for JAX's."""
_OF_ANOTHERS_RECORD = (
    r"(?:site|dist)-packages/(\w+)/[^\n]*\n(?:[^\n]*(?:site|dist)-packages/(?!\1/)\w+/[^\n]*\n){1,2}[^\n]*"
    r"/dataclasses\.py\Z"
)
"""One library's file has a dataclass of another one make a changed copy of itself."""
_OF_TRACING = (
    r"'(?:ShapedArray|ConcreteArray|(?:Closed)?Jaxpr(?:Eqn)?|MainTrace|\w*JaxprTrace|"
    r"(?:Named|Positional|GSPMD)Sharding)' object has no attribute"
)
"""Of JAX's own records, which change from release to release. What a device has depends on its backend."""

KNOWN = Knowledge(
    title="Installed releases do not fit: something uses what the installed release of another package does not have",
    impact=ENDED,
    general=2,
    signs=(
        Raised(
            frames=_OF_LIBRARY,
            about=r"^(?:AttributeError: (?:partially initialized )?module '[\w.]+' has no attribute '|"
            r"ImportError: cannot import name '?\w+'? from (?!partially)|ModuleNotFoundError: No module named '\w+\.|"
            r"TypeError: '(?:type|ABCMeta)' object is not subscriptable|"
            r"TypeError: unsupported operand type\(s\) for \|: '(?:type|ABCMeta|NoneType|_?\w*GenericAlias)'|"
            r"TypeError: dataclass\(\) got an unexpected keyword)",
        ),
        Raised(about=MISSING),
        Raised(
            about=r"^(?:Attribute|Import)Error: .{0,200}\bwas removed (?:in|from) (?:the )?"
            r"(?:JAX|jax|[Nn]um[Pp]y|main)|^(?:Attribute|Import)Error: (?:jax|jnp|numpy|np|flax|optax)[\w.]* "
            r"(?:is|was|has been) (?:deprecated|removed)"
        ),
        # Of Orbax, whose releases say in other ways what a checkpoint holds.
        Raised(about=r"^TypeError: '(?:Step|Root|Tree)\w*Metadata' object is not (?:subscriptable|iterable)"),
        Raised(
            frames=_CALLS_JAX,
            about=rf"^AttributeError: (?:'Config' object has no attribute 'jax_|Unrecognized config option: jax_|"
            rf"{_OF_TRACING})|^TypeError: As of (?:JAX|jax) v?\d",
        ),
        Raised(frames=_OF_ANOTHERS_RECORD, about=r"^TypeError: [\w.]*__init__\(\) got an unexpected keyword argument"),
        Line(
            r"^TypeError: .{0,200}(?:got an unexpected keyword argument|takes \d+ positional arguments? but)",
            code=r"\b(?:jax|jnp|lax|jax\.\w+|flax|linen|nnx|optax|chex|orbax|ocp|hk|haiku|eqx|mjx|tfp|pl|pltpu|plgpu)"
            r"\.[\w.]+\((?!.*\*)|\b(?:shard_map|pjit|pallas_call|make_mesh|NamedSharding)\((?!.*\*)",
            within=r"(?:site|dist)-packages/(?!jax/)",
        ),
        Line(
            r"\.so[\w.]*: undefined symbol: ",
            unless=r"lib(?:cu|nv|nccl|tpu|amdhip|hip|roc|rccl|MIOpen|hsa|cudnn)\w*\.so|undefined symbol: \w*(?:cu|"
            r"nv|hip|nccl)[A-Z_]",
        ),
        Line(
            r"version `\w+_[\d.]+' not found \(required by|cannot enable executable stack as shared object requires|"
            r"cannot allocate memory in static TLS block|DLL load failed(?: while importing|:| with error)"
        ),
        Raised(
            about=r"^(?:Import|OS)Error: (?:/\S+: )?\S+\.so[\w.]*: (?:cannot open shared object file|wrong ELF class|"
            r"invalid ELF header|file too short)|^(?:Import|OS)Error: dlopen\(.{0,300}(?:[Ss]ymbol not found|"
            r"Library not loaded|image not found)"
        ),
        Line(
            r"\bdtype size changed, may indicate binary incompatibility|numpy\.core\.multiarray failed to import|"
            r"module that was compiled using NumPy 1\.x cannot be run in|"
            r"(?:is|are) incompatible with (?:this|the installed) version of (?:jax|flax|orbax)"
        ),
    ),
    fix=(
        "Install releases that were made for each other: update the package whose file is named last in the traceback, "
        "or pin the other one to the release that it was written for."
    ),
    runbook="JaxFunctionErrors",
)
