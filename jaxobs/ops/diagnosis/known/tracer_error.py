"""A value was needed while the program was traced."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line, Raised

KNOWN = Knowledge(
    title="The program uses a traced value as if it were known, or keeps one",
    impact=ENDED,
    signs=(
        Line(
            "(?:Concretization|TracerArrayConversion|TracerBoolConversion|TracerIntegerConversion|"
            "UnexpectedTracer|NonConcreteBooleanIndex)(?:Type)?Error"
        ),
        Line(
            r"TraceContextError|JaxTransformError|different trace level|[Tt]ransforms and Flax models cannot be mixed"
        ),
        Line(r"Leaked trace|[Ll]eaked tracer|unexpected tracer|JAX [Tt]racer object"),
        Raised(about=r"^(?:[\w.]+: )*(?:Type|Value|Index|Key|Attribute)Error: .{0,200}\bTraced<"),
        Event("error:tracer"),
    ),
    fix=(
        "Use jax.lax.cond, switch or while_loop instead of Python's if and while, or mark the "
        "argument static; return values instead of storing them from inside a jitted function."
    ),
    runbook="JaxFunctionErrors",
)
