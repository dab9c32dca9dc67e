"""Two runs told apart: what each event log tells, what differs, and whether it is within given tolerances."""

from jaxobs.comparing.differences import Comparison, Difference, FunctionDifference, compare
from jaxobs.comparing.runs import NoRunError, Run, read_run
from jaxobs.comparing.text import lay_out
from jaxobs.comparing.tolerances import MEASURES, Measure, Measured, Tolerance, ToleranceError, measured, parse

__all__ = [
    "MEASURES",
    "Comparison",
    "Difference",
    "FunctionDifference",
    "Measure",
    "Measured",
    "NoRunError",
    "Run",
    "Tolerance",
    "ToleranceError",
    "compare",
    "lay_out",
    "measured",
    "parse",
    "read_run",
]
