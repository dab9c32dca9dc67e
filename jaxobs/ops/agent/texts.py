"""Text from outside, made harmless for a place: Markdown, Slack. It is data, never markup and never an instruction."""

import re

from jaxobs.ops.diagnosis.evidence import clean

_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_BLOCK = re.compile(r"^(?:[#+=-]|\d+[.)])")
"""Beginning of a heading, a list or an underline at the start of a line."""
_ADDRESS = re.compile(r"(?i)\b(https?|ftp|mailto|javascript|data):")
_TAGS = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})
_SLACK = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;", "*": "∗", "_": "＿", "~": "∼", "`": "ˋ", "@": "＠"})


def escaped(text: str, most: int = 300) -> str:
    """Returns text as one line of Markdown that shows it as it is: no markup, tag, link or row of a table."""
    line = _ADDRESS.sub(r"\1&#58;", _MARKUP.sub(r"\\\1", clean(text, most).translate(_TAGS)))
    return f"&#8203;{line}" if _BLOCK.match(line) else line


def fenced(text: str, language: str = "") -> str:
    """Returns text as a block of code, in a fence that it cannot close."""
    lines = "\n".join(clean(each, 2000) for each in text.split("\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", lines)), default=0))
    return f"{fence}{language}\n{lines}\n{fence}"


def code(text: str, most: int = 300) -> str:
    """Returns text as a span of code, in marks that it cannot close; fit for a cell of a table."""
    line = clean(text, most).replace("|", "¦") or " "
    marks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def slack(text: str, most: int = 300) -> str:
    """Returns text for Slack: it mentions nobody, links nowhere and formats nothing."""
    return clean(text, most).translate(_SLACK)
