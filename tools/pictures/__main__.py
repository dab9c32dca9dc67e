"""Takes the pictures of docs/screens.md and of the README: real programs, looked at in headless Chromium.

python -m tools.screens                      all of them, in about four minutes
python -m tools.screens nan healthy          some of them
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tools.picture import Screen, browser, demo, running, take

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
OUT = ROOT / "docs" / "screens"
FOLDER = Path("/tmp/app")
"""Folder in which the programs run: pictures show call sites, and no path of this machine belongs there."""
DESKTOP, PHONE = (1440, 1000, 1.0), (390, 844, 2.0)
"""Width, height and pixels of the screen for one of the page."""


@dataclass(frozen=True)
class Looked:
    """A program, and for how long it runs before its page is drawn."""

    name: str
    seconds: float
    settings: tuple[str, ...] = ()


LOOKED_AT = (
    Looked("demo", 185),
    Looked("leaking", 150, ("--sample-interval", "1")),
    Looked("nan", 60),
    Looked("server", 60),
    Looked("healthy", 90, ("--peak-flops", "1e11")),
)


def main() -> None:
    """Starts the programs that are named, or all; looks at each when its time has come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [each.name for each in LOOKED_AT]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    wanted = parser.parse_args().names or names
    if unknown := set(wanted) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}. Known: {', '.join(names)}")
    OUT.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        FOLDER.mkdir(exist_ok=True)
        stack.callback(shutil.rmtree, FOLDER, ignore_errors=True)
        began = time.monotonic()
        addresses: list[tuple[Looked, str]] = []
        for program in sorted(LOOKED_AT, key=lambda each: each.seconds):
            if program.name in wanted:
                addresses.append((program, stack.enter_context(running(command(program), FOLDER))))
        chromium = stack.enter_context(browser())
        for program, url in addresses:
            time.sleep(max(0.0, began + program.seconds - time.monotonic()))
            for device, (width, height, scale) in (("desktop", DESKTOP), ("phone", PHONE)):
                for scheme in ("light", "dark"):
                    screen = Screen(width, height, scale, scheme, whole=False)
                    take(chromium, url, OUT / f"{program.name}-{device}-{scheme}.png", screen)
            if program.name == "demo":
                take(chromium, url, ROOT / "docs" / "live-page.png", Screen())


def command(each: Looked) -> list[str]:
    """Returns the arguments that start a program."""
    if each.name == "demo":
        return demo()
    shutil.copy(PROGRAMS / f"{each.name}.py", FOLDER)
    return ["-m", "jaxobs", "run", "--port", "0", *each.settings, f"{each.name}.py"]


if __name__ == "__main__":
    main()
