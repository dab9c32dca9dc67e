"""Takes the README's picture: the live page of a real `jaxobs demo`, in headless Chromium.

python -m tools.picture docs/live-page.png

`python -m tools.screens` takes it along with the pictures of docs/screens.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
COLOURS = 256
"""Size of the palette: enough for a page that is drawn in few colours, in a third of the bytes."""
SETTLED = 5.0
"""Seconds until a page that was just opened has asked for all that it shows."""


@dataclass(frozen=True)
class Screen:
    """Screen on which a page is drawn."""

    width: int = 1440
    height: int = 1100
    scale: float = 1.0
    """Pixels of the picture for one of the page."""
    scheme: str = "light"
    whole: bool = True
    """Whether the picture goes down to the end of the page, or shows one screen."""


def main() -> None:
    """Starts the demo, waits until its mistakes have shown, and takes the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=185, help="how long to let the demo run first")
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    with running(demo()) as url, browser() as chromium:
        time.sleep(args.seconds)
        take(chromium, url, args.out, Screen(scheme="dark" if args.dark else "light"))


def demo() -> list[str]:
    """Returns the arguments with which this interpreter starts the demo."""
    return ["-m", "jaxobs", "demo", "--minutes", "5", "--port", "0"]


@contextlib.contextmanager
def running(command: Sequence[str], folder: Path | None = None) -> Iterator[str]:
    """The address of a program while it runs; `--port 0` in its command becomes a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    arguments = [port if before == "--port" else each for before, each in zip(["", *command], command, strict=False)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    started = [sys.executable, "-u", *arguments]
    with subprocess.Popen(
        started, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.:]+/", line)))
        finally:
            process.terminate()
            process.communicate()


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Chromium, headless."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield started
        finally:
            started.close()


def take(chromium: Any, url: str, out: Path, screen: Screen) -> None:
    """A picture of the page at `url`, with a palette."""
    from PIL import Image

    page = chromium.new_page(
        viewport={"width": screen.width, "height": screen.height},
        color_scheme=screen.scheme,
        device_scale_factor=screen.scale,
    )
    page.goto(url)
    page.wait_for_timeout(1000 * SETTLED)
    page.screenshot(path=out, full_page=screen.whole)
    page.close()
    with Image.open(out) as image:
        palette = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    palette.save(out, optimize=True)


if __name__ == "__main__":
    main()
