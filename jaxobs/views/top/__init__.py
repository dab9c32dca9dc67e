"""`jaxobs top` while it runs: what is fetched, which keys lead where, the lists, and the details behind their rows."""

from jaxobs.views.top.browser import Browser, Page
from jaxobs.views.top.feed import Feed
from jaxobs.views.top.keys import Keys, decode
from jaxobs.views.top.listings import Process

__all__ = ["Browser", "Feed", "Keys", "Page", "Process", "decode"]
