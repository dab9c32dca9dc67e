"""Two installed packages are of releases that do not fit."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

_OF_LIBRARY = (
    r"(?:site|dist)-packages/(?![^\n]*jax/_src/deprecations)[^\n]*"
    r"(?:\n[^\n]*(?:jax/_src/deprecations|lazy_loader/__init__|transformers/utils/import_utils)\.py)?\Z"
)
"""A library's own file is the innermost one, save for what only answers for names that a module does not have."""

KNOWN = Knowledge(
    title="Installed packages do not fit: one uses what the installed release of another does not have",
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
        Raised(
            about=r"^(?:Attribute|Import)Error: .{0,200}\bwas removed (?:in|from) (?:JAX|jax|[Nn]um[Pp]y|the main)|"
            r"^(?:Attribute|Import)Error: (?:jax|jnp|numpy|np|flax|optax)[\w.]* (?:is|was|has been) (?:deprecated|"
            r"removed)"
        ),
        Line(
            r"^TypeError: .{0,200}(?:got an unexpected keyword argument|takes \d+ positional arguments? but)",
            code=r"\b(?:jax|jnp|lax|jax\.\w+)\.[\w.]+\((?!.*\*)",
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
            r"Library not loaded|image not found)",
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
