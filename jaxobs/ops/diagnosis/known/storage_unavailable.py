"""Storage does not answer, or slows its clients down."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line, Raised

KNOWN = Knowledge(
    title="Storage failed: it does not answer, or refuses so many requests",
    impact=ENDED,
    signs=(
        Raised(
            frames=r"\A(?![\s\S]*(?:wandb|mlflow|sentry|comet|neptune))[\s\S]*(?:site|dist)-packages/(?:aiohttp|"
            r"fsspec|requests|"
            r"urllib3|httpx|httpcore|gcsfs|s3fs|botocore|boto3|huggingface_hub|datasets|tensorflow_datasets|"
            r"google/(?:cloud/storage|api_core|resumable_media))/[^\n]*\Z",
            about=r"^(?:[\w.]+\.)?\w*(?:Timeout|TimeoutError|Connection\w*Error|ConnectError|Disconnected\w*|SSLError|"
            r"ProtocolError|PayloadError|ReadError|IncompleteRead|ServiceUnavailable|BadGateway|TooManyRequests)\b"
            r"(?!.{0,400}(?:localhost|127\.0\.0\.1|169\.254|metadata\.google|wandb|mlflow))",
        ),
        Line(r"rateLimitExceeded|\b\d{1,4} retry attempts failed"),
        Line(
            r"\b(?:429|500|502|503|504)\b.{0,120}(?:[Tt]oo [Mm]any [Rr]equests|"
            "[Ss]ervice [Uu]navailable|rateLimitExceeded|[Ii]nternal [Ee]rror|[Bb]ad [Gg]ateway|"
            "[Gg]ateway [Tt]ime-?out)"
        ),
        Line(
            r"[Ss]tale file handle|\[Errno 116\]|\[Errno 5\]|Input/output error|"
            r"Transport endpoint is not connected|\[Errno 10[78]\]|\[Errno 121\]|Remote I/O error|"
            r"Cannot send after transport endpoint shutdown",
            unless=r"what\(\):",
        ),
        Line(
            r"(?:UNAVAILABLE|DEADLINE_EXCEEDED).{0,200}(?:storage\.googleapis|gs://|s3://|gcsfuse|"
            r"GCS)|(?:gs://|s3://|GCS |storage\.googleapis).{0,200}(?:UNAVAILABLE|DEADLINE_EXCEEDED|"
            r"[Tt]imed out)|nfs: server \S+ not responding"
        ),
        Line(
            r"(?:429|5\d\d) (?:Client|Server) Error|Too Many Requests for url|Couldn't reach (?:https?://|"
            r"'?\S+/\S+' on the Hub)|SlowDown\b|reduce your request rate"
        ),
        Line(
            r"Max retries exceeded with url|(?:Read|Connect)Timeout(?:Error)?\b.{0,160}(?:https?://|host=)|"
            r"FSTimeoutError|"
            r"google\.api_core\.exceptions\.(?:ServiceUnavailable|RetryError|TooManyRequests|GatewayTimeout|"
            r"InternalServerError|"
            r"DeadlineExceeded|BadGateway)|HttpError: .{0,160}, 5\d\d$|Timeout of [\d.]+s exceeded|LustreError|"
            r"EndpointConnectionError|"
            r"ChunkedEncodingError",
            unless=r"metadata\.google|169\.254\.169\.254|localhost|127\.0\.0\.1|wandb|mlflow|sentry|telemetry",
        ),
        Line("exceeds the rate limit|[Rr]ate limit exceeded"),
        Line(
            r"(?:Error (?:reading|writing|opening) |Object\b|UploadPart|\bS3\b).{0,300}We encountered an "
            r"internal error\. Please try again|[Cc]url returned error code [1-9]|"
            "Unable to connect to endpoint",
            unless="wandb|mlflow|sentry|telemetry",
        ),
        Line(
            r"ChainedFuture completed \d+/\d+ futures but timed out|"
            r"[Cc]heckpoint\w* (?:save|saving|write|finaliz\w+) .{0,60}(?:timed out|timeout)",
            weak=True,
        ),
        Line(
            r"HTTP response code:? (?:408|429|5\d\d)|[Ss]tatus code'?[:,=]? \(?(?:408|429|5\d\d)\b|"
            r"(?:[Tt]imed out|[Tt]imeout)\b.{0,120}(?:gs|s3)://"
        ),
        Line(
            r"[Cc]ould(?:n't| not) connect to '?https?://|Can't load .{0,60} connection|ServerDisconnectedError|"
            r"ClientConnector\w*Error|ClientPayloadError|IncompleteRead\(|RemoteDisconnected|"
            r"libcurl code \d+|CURL error\s?\[?\d+|[Cc]ould(?:n't| not) resolve host|"
            r"Temporary failure in name resolution.{0,200}https?://|"
            r"https?://.{0,200}Temporary failure in name resolution",
            unless=r"metadata\.google|169\.254\.169\.254|localhost|127\.0\.0\.1|wandb|mlflow|sentry|telemetry",
        ),
    ),
    follows=("host_out_of_memory",),
    collect="The latency and the errors of that storage at the time, and whether the newest checkpoint is complete.",
    fix=(
        "Check the storage service and its quota; spread or retry the requests of many "
        "processes, and put what all read at start on a local disk."
    ),
)
