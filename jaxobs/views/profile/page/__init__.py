"""A profile as one self-contained page: a timeline for each device, a flame graph by scope, and tables."""

from jaxobs.views.profile.page.document import page

__all__ = ["page"]
