"""Two runs distinguished: what each event log says, what differs, and whether it is within given tolerances."""

from jaxobs.views.comparing.differences import Comparison, Difference, FunctionDifference, compare
from jaxobs.views.comparing.measures import MEASURES, Measure
from jaxobs.views.comparing.runs import NoRunError, Run, read_run
from jaxobs.views.comparing.text import lay_out
from jaxobs.views.comparing.tolerances import Loops, Measured, Tolerance, ToleranceError, measured, parse
from jaxobs.views.comparing.verdict import Verdict, judge

__all__ = [
    "MEASURES",
    "Comparison",
    "Difference",
    "FunctionDifference",
    "Loops",
    "Measure",
    "Measured",
    "NoRunError",
    "Run",
    "Tolerance",
    "ToleranceError",
    "Verdict",
    "compare",
    "judge",
    "lay_out",
    "measured",
    "parse",
    "read_run",
]
