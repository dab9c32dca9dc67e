"""Text of `jaxobs explain`: the compilations of a process and their reasons, from its events alone."""

from jaxobs.views.story.functions import FunctionStory, Story, latest_findings, tell
from jaxobs.views.story.log import EventLogError, ProcessEvents, events
from jaxobs.views.story.text import lay_out

__all__ = ["EventLogError", "FunctionStory", "ProcessEvents", "Story", "events", "latest_findings", "lay_out", "tell"]
