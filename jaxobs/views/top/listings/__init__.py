"""The lists of `jaxobs top`, one file for each."""

from jaxobs.views.top.listings.compilations import COMPILATIONS
from jaxobs.views.top.listings.findings import FINDINGS
from jaxobs.views.top.listings.functions import FUNCTIONS
from jaxobs.views.top.listings.processes import Process, processes

__all__ = ["COMPILATIONS", "FINDINGS", "FUNCTIONS", "Process", "processes"]
