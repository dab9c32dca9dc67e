"""The live page: one self-contained HTML document, made from the assets next to this file.

Nothing is built and nothing is fetched from elsewhere: style, scripts and icon are in the document, so it
works on a machine without a network. Its only requests are to `api/v1/snapshot` and `api/v1/events`,
relative to its own address, so it also works behind a proxy that adds a path.
"""

import base64
import functools
import hashlib
import json
import re
from importlib import resources

from jaxobs.base.symptoms import SECTIONS, symptom_url
from jaxobs.facts.accelerators import THROTTLE_REASONS
from jaxobs.facts.compilations import CAUSES, EAGER, OTHER, PHASES
from jaxobs.facts.functions import MEMORY_SECTIONS
from jaxobs.facts.wall import TIME_CATEGORIES

_SPLIT = "<!-- recorded -->"
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)

_FOR_READERS = re.compile(r"^[ \t]*//.*\n|^[ \t]+| +// [^\n\"'`]*$|(?<=[;{])\n| (?==> )|(?<==>) ", re.MULTILINE)
"""Comments, indentation, ends of lines, blanks around arrows: for who reads the asset, not for who opens the page."""
_BETWEEN_RULES = re.compile(r"\s*([{};,>])\s*|^/\*.*\*/\s*", re.MULTILINE)
"""Comments and blanks of a style sheet."""
_PROPERTY = re.compile(r"(?<=[{;])([a-z][a-z-]*): ")
_PLACEHOLDER = re.compile(r"\{\{([\w.]+)\}\}")


@functools.cache
def render() -> bytes:
    """Returns the complete page as UTF-8, ready to send as `text/html; charset=utf-8`; the same on every call."""
    return _filled("index.html").encode()


@functools.cache
def header() -> tuple[str, str]:
    """Returns the header with the policy that whoever serves the page sends with it; the page keeps to it."""
    return "Content-Security-Policy", f"{policy(render().decode())}; connect-src 'self'; frame-ancestors 'none'"


def policy(document: str) -> str:
    """Returns the policy of a document: no script runs but its own, known by their hashes, and nothing is fetched."""
    hashes = [hashlib.sha256(script.encode()).digest() for script in _SCRIPT.findall(document)]
    scripts = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


@functools.cache
def recorded_shell() -> tuple[bytes, bytes]:
    """Returns the page for data that is put into it, as UTF-8: what comes before the data, and what comes after.

    The data are elements `<script type="application/json">` with the ids `recorded` and `recorded-0`, `recorded-1`, ...
    """
    text = _filled("index.html")
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(text)}">'
    before, after = text.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{meta}', 1).split(_SPLIT)
    return before.encode(), after.encode()


def _filled(name: str) -> str:
    """Returns an asset with each `{{other}}` in it replaced by that asset."""
    if name == "facts.js":
        return _vocabulary()
    text = (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")
    if name.endswith(".css"):
        return _PROPERTY.sub(r"\1:", _BETWEEN_RULES.sub(r"\1", text).strip()).replace(";}", "}")
    if not name.endswith(".html"):
        return _FOR_READERS.sub("", text).strip()
    return _PLACEHOLDER.sub(lambda found: _filled(found[1]), re.sub(r"(?m)^ +|\n(?=\n)", "", text))


def _vocabulary() -> str:
    """Returns the words that the page shares with the facts, so that neither can drift from the other."""
    titles = sorted(set(SECTIONS.values()))
    urls = {title: symptom_url(kind) for kind, title in SECTIONS.items()}
    words = {
        "CAUSES": CAUSES,
        "PHASES": PHASES,
        "MEMORY_SECTIONS": MEMORY_SECTIONS,
        "EAGER": EAGER,
        "OTHER": OTHER,
        "THROTTLE_REASONS": THROTTLE_REASONS,
        "TIME_CATEGORIES": TIME_CATEGORIES,
        "SYMPTOM_SECTIONS": [["", symptom_url()], *([title, urls[title]] for title in titles)],
        "SYMPTOMS": {kind: 1 + titles.index(title) for kind, title in SECTIONS.items()},
    }
    texts = {name: json.dumps(value, separators=(",", ":")).replace("<", "\\u003c") for name, value in words.items()}
    return "\n".join(f"const {name} = {text};" for name, text in texts.items())
