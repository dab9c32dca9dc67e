"""Storage refuses the job's credentials or rights."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="Storage refuses access: rights or credentials",
    impact=ENDED,
    signs=(
        Line(r"PermissionError: \[Errno 13\]|\[Errno 30\]|Read-only file system"),
        Line(
            r"\b40[13]\b.{0,120}(?:Forbidden|Unauthorized|does not have storage|storage\.(?:objects|"
            "googleapis))"
        ),
        Line(
            "AccessDenied|PERMISSION_DENIED.{0,200}(?:storage|bucket|gs://|s3://)|(?:gs|"
            "s3)://.{0,300}PERMISSION_DENIED|(?:[Cc]redentials|token).{0,60}(?:expired|"
            "could not be (?:found|determined|refreshed))|DefaultCredentialsError"
        ),
        Line(
            r"\b40[13] Client Error|GatedRepoError|Access to model \S+ is restricted|NoCredentialsError|"
            r"Unable to locate credentials|"
            r"ExpiredToken|RequestTimeTooSkewed|InvalidAccessKeyId|SignatureDoesNotMatch|RefreshError|invalid_grant|"
            r"Anonymous caller does not have|does not have storage\."
        ),
        Line(
            r"(?:HTTP|[Hh]ttp|[Rr]esponse|[Ss]tatus|[Ee]rror)[\w ,:(=]{0,30}\b40[13]\b|"
            r"\b40[13]\b \(?(?:Client Error|Forbidden|Unauthorized)|"
            r"PermissionDenied(?:Error)?\b|[Ii]nsufficient [Pp]ermission|does not have [\w.]+ access|"
            r"UNAUTHENTICATED|[Uu]nauthenticated|[Pp]ermission '[\w.]+' denied",
            unless=r"NCCL|CUDA|nvml|NVML|wandb|mlflow",
        ),
        Line("HTTP response code:? 400", followed="invalid_grant|invalid_token"),
        Line(r"Forbidden: https?://|\bAccess denied\b|(?:access(?:ing)? a|is a|Cannot access) gated repo"),
    ),
    fix=(
        "Give the job's account the right to read and write there; check with one small file from the same pod. "
        "Credentials that expire have to be fetched again during the run, and the clock of the host must be right."
    ),
)
