"""`jaxobs report`: the live page of a process that has ended, rebuilt from its event log, as one HTML file.

The page is the live page itself with the data inside it, so that a report shows what the page shows. What only a
running process knows is absent: calls, dispatch times, what was open, the driver's view of the devices.
"""

from jaxobs.views.report.document import write
from jaxobs.views.report.reading import Report, read
from jaxobs.views.report.recording import Recording

__all__ = ["Recording", "Report", "read", "write"]
