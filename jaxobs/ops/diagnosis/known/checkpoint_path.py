"""A checkpoint cannot be written to or read from the path that was given."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

KNOWN = Knowledge(
    title="The path of the checkpoint cannot be used",
    impact=ENDED,
    signs=(
        Line(r"[Cc]heckpoint path should be absolute|[Pp]aths? (?:\S+ )?(?:must|should) be (?:an )?absolute"),
        Line(
            r"(?:[Dd]estination|[Cc]heckpoint|[Dd]irectory).{0,120}already exists",
            unless="[Ss]kip|[Oo]verwrit|"
            r"[Uu]sing",
        ),
        Line(r"[Cc]heckpoint.{0,80}(?:path|directory).{0,60}(?:is not a directory|must be|is invalid|not supported)"),
        Line(
            r"(?:Failed to acquire lock on file|[Uu]nable to lock file|Failed to lock).{0,400}"
            r"(?:Function not implemented|[Nn]o locks available|[Oo]peration not supported|ENOSYS|"
            r"ENOLCK|ENOTSUP|EOPNOTSUPP|errno = (?:37|38|95)\b)"
        ),
        Line("StepAlreadyExistsError|File collision on .{0,200} during finalize|Failed to resolve step metadata of "),
        Raised(
            about=r"^(?:\w+\.)*FileExistsError: .{0,80}['\"][^'\"]*(?:orbax-checkpoint-tmp|"
            r"(?i:ckpt|checkpoint)[^/'\"]*(?:/(?:step[_-]?)?\d+)?/?['\"])"
        ),
    ),
    fix=(
        "Give an absolute path (`os.path.abspath`) to a directory that is not there yet, or allow it to be "
        "overwritten (`force=True`); remove the temporary directory that an interrupted save left behind. Use the "
        "same path on every process. If the file system has no locks, write to another one."
    ),
    runbook="JaxCheckpointWorkAtRisk",
)
