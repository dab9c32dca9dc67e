"""Bounds of the buckets of histograms, in seconds if nothing else is said."""

CHECKPOINT_BOUNDS = (0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0, 600.0, 1800.0, 3600.0)
"""Buckets of checkpoint operations in seconds: 10 ms to 1 h."""

PHASE_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0,
    600.0, 1200.0, 1800.0, 3600.0,
)  # fmt: skip
"""Buckets of compile phases in seconds: 1 ms to 1 h."""

REQUEST_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
)  # fmt: skip
"""Buckets of requests in seconds: 1 ms, of a warm small model, to 10 min, of a long generation."""

HTTP_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Buckets of HTTP requests in seconds, as OpenTelemetry's conventions advise."""

FIRST_TOKEN_BOUNDS = (
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    600.0,
)  # fmt: skip
"""Buckets of the time to the first token in seconds: 5 ms to 10 min, finest where objectives are, at 50 ms to 1 s."""

OUTPUT_TOKEN_BOUNDS = (
    0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 10.0,
)  # fmt: skip
"""Buckets of the time for each output token in seconds: 1 ms to 10 s. People read about 20 ms to 100 ms a token."""

TOKEN_BOUNDS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0)
"""Buckets of the tokens of a request, as OpenTelemetry's conventions advise."""

QUEUE_BOUNDS = (0.001, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Buckets of the time in a queue in seconds: 1 ms to 10 min."""

BATCH_BOUNDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
"""Buckets of batches in rows."""

STEP_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
"""Buckets of step times in seconds: 1 ms to 5 min."""

DISPATCH_BOUNDS = (
    5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0, 10.0,
)  # fmt: skip
"""Buckets of dispatch times in seconds: 5 µs to 10 s."""

DEVICE_BOUNDS = (
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
)  # fmt: skip
"""Buckets of device times in seconds: 100 µs to 1 min."""
