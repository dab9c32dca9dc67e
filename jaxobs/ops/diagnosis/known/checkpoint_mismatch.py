"""A checkpoint does not fit the program that restores it."""

from __future__ import annotations

from jaxobs.ops.diagnosis.damaged_files import OF_SO_MANY_PROCESSES
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

_OF_CHECKPOINTS = (
    r"(?:orbax/|flax/training/checkpoints|array_serialization/|etils/epath/|levanter/checkpoint|t5x/checkpoint|"
    r"paxml/checkpoint)[^\n]*\Z"
)
"""Files of the libraries that save and restore."""

_PARAMETER = r"(?:(?:\w+\.)+weight|(?:\w+\.){2,}(?:bias|kernel|scale|embedding|\w+_(?:scale|weight|bias|packed)\w*))"
"""The name of one, as checkpoints of PyTorch have it."""

KNOWN = Knowledge(
    title="The checkpoint does not fit the program: other structure, shapes or names",
    impact=ENDED,
    signs=(
        Raised(
            frames=_OF_CHECKPOINTS,
            about=r"^(?:[\w.]+: )*\w+Error: .{0,300}(?:[Mm]ismatch|(?:does|do) not match|doesn't match|different|"
            r"[Ii]ncompatible|not compatible|has changed|not a subset|an unexpected (?:shape|dtype|type)\b|"
            r"Missing \d+ keys in structure)",
        ),
        Raised(
            frames=r"(?:flax/serialization|equinox/_serialisation)\.py\Z",
            about=r"^(?:[\w.]+: )*(?:Value|Key|Runtime|Type|Attribute)Error",
        ),
        Line(OF_SO_MANY_PROCESSES),
        Line(
            "[Uu]ser-provided restore item and on-disk value metadata tree structures do not match|"
            "[Tt]ree structures? do(?:es)? not match.{0,80}(?:checkpoint|restore)?"
        ),
        Line(
            "Dict key mismatch; expected keys|Missing keys? in .{0,60}checkpoint|"
            "[Cc]heckpoint .{0,120}is missing (?:required )?(?:keys?|parameters?|weights?|layers?)"
        ),
        Line("Requested shape: .{0,80}(?:is not compatible with|does not match) the stored shape"),
        Line(
            "(?:restor|checkpoint).{0,160}(?:shape mismatch|[Ii]ncompatible shapes?|"
            "structure mismatch|do(?:es)? not match)"
        ),
        Line("(?:Parameter|Param|Key|key) .{0,80}(?:not found|missing) in (?:the )?checkpoint"),
        Line(
            r"(?:[Pp]y ?[Tt]ree|[Tt]ree ?[Dd]ef|[Ss]tate ?dict|structure)\w*\b.{0,80}(?:mismatch|"
            r"do(?:es)? not (?:match|have the same)|differ from)",
            unless="vmap|scan|while|cond|carry|body|lax\\.",
        ),
        Line(
            r"ScopeParam(?:Shape|NotFound)Error|size mismatch for [\w.]+: copying a param|loading state_dict|"
            r"Missing key\(s\) in|"
            r"target dict keys and state dict keys do not match|Initializer expected to generate shape"
        ),
        Line(r'(?:zarr|ocdbt|tensorstore).{0,80}: Expected "\w+" (?:of|to be)'),
        Line(r'Error opening "(?:zarr|ocdbt|n5).{0,60}Expected "\w+" (?:of|to be)'),
        Line(
            r"[Dd]eseriali[sz]ed leaf .{0,200}has changed|"
            r"(?:changed|different|other) (?:shape|dtype|type|size|structure)\b.{0,160}\bon disk"
        ),
        Line(r"(?:not found|missing|absent) (?:in|from) (?:the )?(?:\w+ )?(?:checkpoint|state dict)"),
        Line(
            r"[Ii]ncompatible shapes? .{0,80}(?:[Cc]heckpoint|[Rr]estor)|[Mm]issing keys? .{0,80}(?:in|"
            r"from) .{0,20}(?:[Cc]heckpoint|state)"
        ),
        Line(
            r"Following (?:\w+ )*weights were not initialized from checkpoint|"
            r"[Tt]here is no module or parameter named|File does not contain tensor |"
            r"Failed to load tensor \S+ from file|(?:[Nn]o|Only one) key should be found: "
        ),
        Raised(about=rf"^KeyError: ['\"]{_PARAMETER}['\"]"),
        Line(
            r"checkpoint has shape|has shape .{1,60} in (?:the )?checkpoint|incompatible with the model(?:'s)? shape|"
            r"(?:[Pp]retrained|[Cc]heckpoint|[Rr]estored|[Ss]aved|[Ll]oaded) (?:weights?|params?|parameters?|arrays?|"
            r"leaf|tensor|state|value)\b.{0,120}(?:shape|[Ss]ize|dtype|structure).{0,80}(?:mismatch|incompatible|"
            r"(?:does|do) not match|different|expected)|"
            r"(?:doesn't|does not|don't|do not) match (?:the )?(?:checkpoint|saved|restored|on-disk)"
        ),
    ),
    fix=(
        "Restore with the configuration that wrote it (layers, vocabulary, optimizer, scan over "
        "layers), or convert it; a partial restore must be asked for. The state of the input also wants as many "
        "processes as saved it."
    ),
    runbook="JaxCheckpointWorkAtRisk",
)
