"""`jaxobs top` while it runs: what is fetched, which keys lead where, the lists, and the details behind their rows."""

from jaxobs.views.top.browser import Browser
from jaxobs.views.top.feed import Feed
from jaxobs.views.top.keys import Keys, decode
from jaxobs.views.top.listings import Process
from jaxobs.views.top.page import Page

__all__ = ["Browser", "Feed", "Keys", "Page", "Process", "decode"]
