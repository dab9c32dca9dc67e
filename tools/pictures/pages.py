"""Pictures of the live page and of a report: real programs, looked at in headless Chromium."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).with_name("programs")
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
COLOURS = 256
"""Size of the palette: enough for a page that is drawn in few colours, in a third of the bytes."""
SETTLED = 5.0
"""Seconds until a page that was just opened has asked for all that it shows."""
FOLDER = Path("/tmp/app")
"""Folder in which the programs run: pictures show call sites, and no path of this machine belongs there."""


@dataclass(frozen=True)
class Screen:
    """Screen on which a page is drawn."""

    width: int = 1440
    height: int = 1000
    scale: float = 1.0
    """Pixels of the picture for one of the page."""
    scheme: str = "light"
    whole: bool = False
    """Whether the picture goes down to the end of the page, or shows one screen."""
    card: bool = False
    """Whether to save the card of the worst finding instead."""


@dataclass(frozen=True)
class Drawn:
    """A program, how long it runs before its page is drawn, and on which screen."""

    seconds: float
    """0: the program runs to its end, and its report is drawn."""
    command: tuple[str, ...] = ()
    """Arguments of Python; without them, the program of the same name under `jaxobs run`."""
    settings: tuple[str, ...] = ()
    screen: Screen = Screen()


_RUN = ("-m", "jaxobs", "run", "--port", "0", "--event-log", "events.jsonl")
PHONE = Screen(390, 844, 2.0)
DRAWN = {
    "nan": Drawn(60, screen=Screen(scheme="dark")),
    "server": Drawn(60, screen=PHONE),
    "healthy": Drawn(90, settings=("--peak-flops", "1e11")),
    "leaking": Drawn(150, settings=("--sample-interval", "1")),
    "live-page": Drawn(185, ("-m", "jaxobs", "demo", "--minutes", "5", "--port", "0"), screen=Screen(1200, 900)),
    "verdict": Drawn(0, (*_RUN, "ragged_batches.py"), screen=Screen(1200, 450)),
    "report": Drawn(0, (*_RUN, "ragged_batches.py"), screen=Screen(1200, 1100)),
    "card": Drawn(0, (*_RUN, "ragged_batches.py"), screen=Screen(1200, 630, card=True)),
}
"""By picture."""


def draw(pictures: Sequence[Path]) -> None:
    """Draws pictures by the names of `DRAWN`, each when its time has come."""
    names = {path.stem: path for path in pictures}
    with _folder(), browser() as chromium:
        for name in DRAWN:  # one program at a time: another one's work would look like slow steps
            if name in names and not DRAWN[name].seconds:
                take(chromium, _report(DRAWN[name].command).as_uri(), names[name], DRAWN[name].screen)
            elif name in names:
                with _running(_command(name)) as url:
                    time.sleep(DRAWN[name].seconds)
                    take(chromium, url, names[name], DRAWN[name].screen)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Starts Chromium, headless."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield started
        finally:
            started.close()


def take(chromium: Any, url: str, out: Path, screen: Screen) -> None:
    """Takes a picture of the page at `url`."""
    page = chromium.new_page(
        viewport={"width": screen.width, "height": screen.height},
        color_scheme=screen.scheme,
        device_scale_factor=screen.scale,
    )
    page.goto(url, wait_until="domcontentloaded")
    page.wait_for_timeout(1000 * SETTLED)
    if screen.card:
        with page.expect_download() as saved:
            page.get_by_role("button", name="save as a picture").first.click()
        saved.value.save_as(out)
    else:
        page.screenshot(path=out, full_page=screen.whole)
    page.close()
    shrink(out)


def shrink(path: Path) -> None:
    """Gives a picture a palette."""
    from PIL import Image

    with Image.open(path) as image:
        palette = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    palette.save(path, optimize=True)


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    """Makes a folder with the programs and a link to jaxobs."""
    if (FOLDER / "jaxobs").is_symlink():  # left behind by a run that was killed
        shutil.rmtree(FOLDER)
    shutil.copytree(PROGRAMS, FOLDER)
    shutil.copy(ROOT / "examples" / "ragged_batches.py", FOLDER)
    (FOLDER / "jaxobs").symlink_to(ROOT / "jaxobs")
    try:
        yield
    finally:
        shutil.rmtree(FOLDER)


def _command(name: str) -> Collection[str]:
    drawn = DRAWN[name]
    return drawn.command or ("-m", "jaxobs", "run", "--port", "0", *drawn.settings, f"{name}.py")


def _report(command: Sequence[str]) -> Path:
    """Runs a program to its end; returns the report of its event log."""
    (FOLDER / "events.jsonl").unlink(missing_ok=True)
    for arguments in (command, ("-m", "jaxobs", "report", "events.jsonl")):
        subprocess.run(
            [sys.executable, *arguments], cwd=FOLDER, env=_environment(), check=True, stdout=subprocess.DEVNULL
        )
    return FOLDER / "events.html"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(FOLDER)}


@contextlib.contextmanager
def _running(command: Collection[str]) -> Iterator[str]:
    """Yields the address of a program while it runs; `--port 0` in its command becomes a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    arguments = [port if before == "--port" else each for before, each in zip(["", *command], command, strict=False)]
    with subprocess.Popen(
        [sys.executable, "-u", *arguments], cwd=FOLDER, env=_environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            yield next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.:]+/", line)))
        finally:
            process.terminate()
            process.communicate()
