"""The live page: one self-contained HTML document, made from the assets beside this file.

Nothing is built and nothing is fetched from elsewhere: style, scripts and icon are in the document, so it
works on a machine without a network. Its only requests are to `api/v1/snapshot` and `api/v1/events`,
relative to its own address, so it also works behind a proxy that adds a path.
"""

from __future__ import annotations

import functools
import json
import re
from importlib import resources

from jaxobs.facts import CAUSES, EAGER, MEMORY_SECTIONS, OTHER, PHASES

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The header that whoever serves the page sends with it; the page keeps to it."""

_PLACEHOLDER = re.compile(r"\{\{([\w.]+)\}\}")


@functools.cache
def render() -> bytes:
    """The complete page as UTF-8, ready to send as `text/html; charset=utf-8`; the same on every call."""
    return _filled("index.html").encode()


def _filled(name: str) -> str:
    """An asset with each `{{other}}` in it replaced by that asset."""
    if name == "facts.js":
        return _vocabulary()
    text = (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")
    if not name.endswith(".html"):
        return text.strip()
    return _PLACEHOLDER.sub(lambda found: _filled(found[1]), text)


def _vocabulary() -> str:
    """The words that the page shares with the facts, so that neither can drift from the other."""
    words = {
        "CAUSES": CAUSES,
        "PHASES": PHASES,
        "MEMORY_SECTIONS": MEMORY_SECTIONS,
        "EAGER": EAGER,
        "OTHER": OTHER,
    }
    return "\n".join(
        f"const {name} = {json.dumps(value).replace('<', chr(92) + 'u003c')};" for name, value in words.items()
    )
