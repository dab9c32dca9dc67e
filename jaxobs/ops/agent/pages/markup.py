"""Elements of a page. Text is text: only what `tag` has made is markup."""

import base64
import hashlib
import html
import re
from collections.abc import Iterable
from importlib import resources

from jaxobs.ops.diagnosis.evidence import clean

MOST_TEXT = 4000
"""Characters of a piece of text."""
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)")
STYLE = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""No script runs, nothing is fetched, and the only style is the one whose hash this is."""


class Html(str):
    """Text that is markup."""


def text(given: str) -> Html:
    """Returns text from outside as markup that shows it: bounded, and without control characters."""
    return Html(html.escape(clean(given, MOST_TEXT)))


def joined(parts: Iterable[str]) -> Html:
    """Returns pieces in a row; those that are not markup as text."""
    return Html("".join(each if isinstance(each, Html) else html.escape(each) for each in parts))


def tag(kind: str, /, *inside: str, **attributes: str) -> Html:
    """Returns an element; what is inside is text unless it is markup."""
    named = {key.rstrip("_").replace("_", "-"): html.escape(value) for key, value in attributes.items()}
    said = "".join(f' {key}="{value}"' for key, value in named.items())
    return Html(f"<{kind}{said}>" + (f"{joined(inside)}</{kind}>" if kind != "input" else ""))


def link(address: str, *inside: str) -> Html:
    """Returns a link, which says nothing of the page to where it leads; text if the address is not one of the web."""
    is_web = address.startswith(("https://", "http://", "./", "../", "#"))
    return tag("a", *inside, href=address, rel="noreferrer") if is_web else tag("span", *inside)


def sentence(ours: str) -> Html:
    """Returns a sentence of a runbook, in which code and links are marked as in Markdown."""
    marked = _CODE.sub(r"<code>\1</code>", text(ours))
    return Html(_LINK.sub(r'<a href="\2" rel="noreferrer">\1</a>', marked))


def listed(kind: str, items: Iterable[str]) -> Html:
    """Returns a list of the kind `ol` or `ul`."""
    return tag(kind, *(tag("li", each) for each in items))


def page(title: str, *body: str) -> str:
    """Returns a document."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{tag('title', text(title))}<style>{STYLE}</style></head><body>{tag('main', *body)}</body></html>\n"
    )
