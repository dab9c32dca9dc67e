"""Takes the README's picture: the live page of a real `jaxobs demo`, in headless Chromium.

python -m tools.picture docs/live-page.png
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def main() -> None:
    """Starts the demo, waits until its mistakes have shown, and takes the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=75, help="how long to let the demo run first")
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    demo = [sys.executable, "-u", "-m", "jaxobs", "demo", "--minutes", "5", "--port", "0"]
    with subprocess.Popen(demo, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.:]+/", line)))
            time.sleep(args.seconds)
            take(url, args.out, "dark" if args.dark else "light")
        finally:
            process.terminate()


def take(url: str, out: Path, scheme: str) -> None:
    """A picture of the page at `url`, 1440 pixels wide."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 1100}, color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(url)
        page.wait_for_timeout(5000)
        page.screenshot(path=out, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
