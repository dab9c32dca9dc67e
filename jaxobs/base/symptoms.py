"""Sections of `docs/symptoms.md`, by the name of a finding or of an error's kind."""

import re

from jaxobs.base import data_files
from jaxobs.base.links import page_url

PAGE = "docs/symptoms.md"

SECTIONS = {kind: heading for heading, kinds in data_files.table(__name__).items() for kind in kinds}
"""Headings of the page, by the name of a finding or of an error's kind."""


def symptom_url(kind: str | None = None) -> str:
    """Returns the address of the section about a finding or an error; without one, of the whole page."""
    section = SECTIONS.get(kind or "")
    if section is None:
        return page_url(PAGE)
    anchor = re.sub(r"[^\w\- ]", "", section.lower()).replace(" ", "-")  # as GitHub makes it from a heading
    return f"{page_url(PAGE)}#{anchor}"


def symptom_reference(kind: str) -> str:
    """Returns the section and the page of a finding or an error, as text; "" if it has no section.

    An address with the section in it is wider than many a terminal.
    """
    section = SECTIONS.get(kind)
    return "" if section is None else f'"{section}" in {symptom_url()}'
