"""A hook for MkDocs: adds the pages outside of docs/ to the site, and points every link to its target there.

The Markdown stays readable in the repository, where its links are relative to the files. On the site README is the home
page, runbooks and the other pages of the root are next to those of docs/, and anything else is on GitHub.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from jaxobs.base.version import __version__

ROOT = Path(__file__).resolve().parent.parent
SOURCES = "https://github.com/jaxobs/jaxobs/blob/main/"
HOME = "README.md"
OUTSIDE = ("*.md", "runbooks/*.md", "tools/go/README.md")
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_CODE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`")


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    """Names the version that the site documents on each page."""
    config.site_name = f"jaxobs {__version__}"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages outside of docs/."""
    from mkdocs.structure.files import File

    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            source = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, place(source), content=path.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with its links as the site needs them."""
    here = source(page.file.src_uri)
    known = {each.src_uri for each in files}
    kept: list[str] = []

    def keep(code: re.Match[str]) -> str:
        kept.append(code[0])
        return f"\0{len(kept) - 1}\0"

    text = _LINK.sub(
        lambda link: link[1] + lead(link[2], here, page.file.src_uri, known) + link[3], _CODE.sub(keep, markdown)
    )
    return re.sub(r"\0(\d+)\0", lambda gap: kept[int(gap[1])], text)


def place(path: str) -> str:
    """Returns the path on the site of a file of the repository."""
    return "index.md" if path == HOME else path.removeprefix("docs/")


def source(place_: str) -> str:
    """Returns the file of the repository that a page of the site is made of."""
    if place_ == "index.md":
        return HOME
    return f"docs/{place_}" if (ROOT / "docs" / place_).exists() else place_


def lead(link: str, here: str, from_: str, known: set[str]) -> str:
    """A link of the file `here` as the page `from_` needs it."""
    path, hash_, anchor = link.partition("#")
    if path.startswith(SOURCES):
        target = path.removeprefix(SOURCES)
    elif not path or re.match(r"[a-z]+:", path):
        return link
    else:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    if place(target) in known:
        return posixpath.relpath(place(target), posixpath.dirname(from_) or ".") + hash_ + anchor
    if not (ROOT / target).exists():
        return link  # MkDocs warns
    return SOURCES + target + hash_ + anchor
