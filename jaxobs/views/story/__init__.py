"""What `jaxobs explain` tells: what a process compiled and why, from its events alone, live or from a log."""

from jaxobs.views.story.functions import FunctionStory, Story, latest_findings, tell
from jaxobs.views.story.log import EventLogError, Log, ProcessEvents, events, read_log
from jaxobs.views.story.text import lay_out

__all__ = [
    "EventLogError",
    "FunctionStory",
    "Log",
    "ProcessEvents",
    "Story",
    "events",
    "latest_findings",
    "lay_out",
    "read_log",
    "tell",
]
