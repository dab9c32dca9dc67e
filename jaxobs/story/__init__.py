"""What `jaxobs explain` tells: what a process compiled and why, from its events alone, live or from a log."""

from jaxobs.story.functions import FunctionStory, Story, tell
from jaxobs.story.log import EventLogError, Log, ProcessEvents, read_log
from jaxobs.story.text import lay_out

__all__ = ["EventLogError", "FunctionStory", "Log", "ProcessEvents", "Story", "lay_out", "read_log", "tell"]
