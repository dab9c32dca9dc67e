"""Parts that the texts of a profile share."""

from jaxobs.facts.profiles import PRODUCTS, OperationTime

_FAR = 0.2
"""Ratio to the peak of the data sheet below which an operation is far from the roofline, as in `far_from_roofline`."""
_LEAST_SHARE = 0.01
_LARGE_SHARE = 0.1
"""Below, an operation is far from the roofline because it is small."""


def remarks(row: OperationTime) -> list[str]:
    """Returns remarks on an operation that takes a notable time."""
    if row.share < _LEAST_SHARE:
        return []
    found = []
    if row.widened:
        found.append("in float64, and most of what the program is given is narrower")
    if row.replicated and row.category in PRODUCTS:
        found.append("every device computes all of it")
    if row.share >= _LARGE_SHARE and row.roofline_ratio is not None and row.roofline_ratio <= _FAR:
        found.append(f"at {row.roofline_ratio:.0%} of what the device could do")
    return found
