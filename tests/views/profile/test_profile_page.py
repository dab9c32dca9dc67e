"""The page: what is on it, and what cannot get into it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers import xplanes
from helpers.xplanes import event, operation

from jaxobs.facts.profiles import CATEGORIES
from jaxobs.profiles import reading
from jaxobs.profiles.reading import Reading
from jaxobs.views.profile.page import document as flame
from jaxobs.views.profile.page import document as timeline
from jaxobs.views.profile.page import page

US = 1000.0
HOSTILE = '</script><img src=x onerror=alert(1)>"'


class Elements(HTMLParser):
    """Counts elements, and sees what they load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes in one element."""
        self.found.append((tag, dict(attrs)))


@pytest.fixture
def found(tmp_path: Path) -> Reading:
    """Two devices, one of them idle for half of the time; names that would be markup."""
    return reading.read(
        xplanes.write(
            tmp_path,
            xplanes.host(
                python=[event("PjitFunction(f)", 0, US)],
                worker=[
                    operation("dot.1", 0, 10 * US), operation(HOSTILE, 0, 5 * US, device=1, module=f"jit_{HOSTILE}"),
                ],
            ),
        )
    )  # fmt: skip


def test_names_of_the_program_are_text(found: Reading) -> None:
    """Wherever they stand; and the page loads nothing."""
    text = b"".join(page(found, HOSTILE)).decode()
    elements = Elements()
    elements.feed(text)
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    assert tags.count("script") == tags.count("style") == 1
    assert not [attrs for _, attrs in elements.found if {"src", "href", "srcset", "onerror"} & attrs.keys()]
    assert not re.search(r"@import|url\(", text)
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") >= 4


def test_the_page_shows_what_the_profile_says(found: Reading) -> None:
    text = b"".join(page(found, "trace")).decode()
    for expected in ("cpu:0", "100.0%", "cpu:1", "50.0%", "dot.1", "waiting", "matmul", "0.01 ms"):
        assert expected in text


def test_a_timeline_covers_the_window_once(found: Reading) -> None:
    """Stretch after stretch; idle time has its reason."""
    [host] = found.hosts.values()
    busy, half = (timeline.stretches(host, track) for track in host.trace.tracks)
    assert [(each.start, each.end, each.name, each.idle, each.operation) for each in busy] == [
        (0.0, 1.0, "matmul", False, "dot.1")
    ]
    assert [(each.start, each.end, each.name, each.idle) for each in half] == [
        (0.0, 0.5, "other", False), (0.5, 1.0, "waiting", True),
    ]  # fmt: skip


def test_frames_lie_on_what_they_are_part_of(found: Reading) -> None:
    """The widest first, and together as wide as what is under them."""
    frames = flame.frames(found.profile.operations)
    assert [(each.name, each.deep, round(each.start, 3), round(each.width, 3)) for each in frames[:3]] == [
        ("all", 0, 0.0, 1.0), ("f", 1, 0.0, 0.667), ("dot.1", 2, 0.0, 0.667),
    ]  # fmt: skip
    assert sum(each.width for each in frames if each.deep == 1) == pytest.approx(1)
    assert flame.frames(()) == []


def test_every_category_has_a_colour() -> None:
    style = (Path(flame.__file__).parent / "page.css").read_text()
    assert [each for each in CATEGORIES if f"--{each}: #" not in style] == []


def test_an_empty_profile_is_a_page(tmp_path: Path) -> None:
    """With a note that says why."""
    empty = reading.read(xplanes.write(tmp_path, xplanes.host(python=[event("nothing", 0, US)])))
    assert "no operations of a device" in b"".join(page(empty, "trace")).decode()
