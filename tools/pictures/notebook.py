"""Takes the picture in docs/notebooks.md: cells run by a real kernel, as HTML in headless Chromium.

python -m tools.notebook_picture docs/notebook.png [--dark]
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from tools.picture import ARGUMENTS, CHROMIUM

CELLS = (
    "%load_ext jaxobs",
    """import jax
import jax.numpy as jnp

@jax.jit
def train_step(params, batch):
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((batch @ p) ** 2))(params)
    return params - 0.1 * gradient, loss

params = jnp.ones((64, 8))""",
    """%%jaxobs
losses = []
for rows in range(20, 40):
    params, loss = train_step(params, jnp.ones((rows, 64)))
    losses.append(loss)""",
)


def main() -> None:
    """Runs the cells and takes the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "notebook.html")
        page.write_text(document("dark" if args.dark else "light"), encoding="utf-8")
        take(page.as_uri(), args.out)


def document(theme: str) -> str:
    """The notebook as one page, without what it would fetch from other hosts."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in CELLS])
    NotebookClient(notebook, timeout=120).execute()
    text, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)
    return re.sub(r"<script[^>]*\bsrc=[^>]*></script>", "", text)


def take(url: str, out: Path) -> None:
    """A picture of the page at `url`, 1100 pixels wide."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1100, "height": 300})
        page.goto(url, wait_until="domcontentloaded")
        page.wait_for_timeout(1000)
        page.screenshot(path=out, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
