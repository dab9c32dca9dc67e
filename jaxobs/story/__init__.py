"""What `jaxobs explain` tells: what a process compiled and why, from its events alone, live or from a log."""

from jaxobs.story.functions import FunctionStory, Story, latest_findings, tell
from jaxobs.story.log import EventLogError, Log, ProcessEvents, event_of, lines, read_log
from jaxobs.story.text import lay_out

__all__ = [
    "EventLogError",
    "FunctionStory",
    "Log",
    "ProcessEvents",
    "Story",
    "event_of",
    "latest_findings",
    "lay_out",
    "lines",
    "read_log",
    "tell",
]
