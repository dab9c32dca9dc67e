"""Picture of a notebook: cells run by a real kernel, as HTML in headless Chromium."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tools.pictures.pages import Screen, browser, take

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


def draw(out: Path) -> None:
    """Runs the cells and takes the picture."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        page = Path(folder, "notebook.html")
        page.write_text(document(), encoding="utf-8")
        take(chromium, page.as_uri(), out, Screen(1100, 300, whole=True))


def document() -> str:
    """Returns the notebook as one page, without what it would fetch from other hosts."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in CELLS])
    NotebookClient(notebook, timeout=120).execute()
    text, _ = HTMLExporter(theme="light").from_notebook_node(notebook)
    return re.sub(r"<script[^>]*\bsrc=[^>]*></script>", "", text)
