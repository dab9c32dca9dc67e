"""Details behind a row: everything that is known of one finding, function or compilation."""

from jaxobs.views.top.details.compilations import compilation
from jaxobs.views.top.details.findings import finding
from jaxobs.views.top.details.functions import function

__all__ = ["compilation", "finding", "function"]
