"""A notebook as Jupyter runs it: a kernel, its cells one after the other, and what a browser shows of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.contrast import CONTRAST
from helpers.page_fixtures import chrome
from helpers.paths import ROOT
from helpers.run_programs import environment

__all__ = ["chrome"]  # a fixture that the tests take by name

TRAINS = """%%jaxobs
import jax, jax.numpy as jnp

@jax.jit
def train_step(params, batch):
    value, gradient = jax.value_and_grad(lambda p: jnp.mean((batch["x"] @ p) ** 2))(params)
    return params - 0.1 * gradient, value

params = jnp.ones((64, 8))
for size in range(20, 41):
    params, value = train_step(params, {"x": jnp.ones((size, 64))})
value.shape"""
BREAKS = "def f(x):\n    return x @ x\n\njax.jit(f)(jnp.ones((2, 3)))"
_ANSI = re.compile(r"\x1b\[[\d;]*m")
AGAIN = """%%jaxobs
@jax.jit
def g(x):
    return x * 2
g(params)
'<b>&'"""
CELLS = ["%load_ext jaxobs", TRAINS, BREAKS, f"%%jaxobs\n{BREAKS}", AGAIN, AGAIN, AGAIN, AGAIN, AGAIN,
         "import jaxobs\njaxobs.snapshot()"]  # fmt: skip


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The notebook with its outputs."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbformat

    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in CELLS])
    client = nbclient.NotebookClient(made, timeout=240, allow_errors=True, resources={"metadata": {"path": str(ROOT)}})
    folder = tmp_path_factory.mktemp("jupyter")
    client.execute(env=environment(IPYTHONDIR=str(folder), JAXOBS_RAISE_INTERNAL_ERRORS="1"))
    yield made


def shown(notebook: Any, number: int, form: str = "text/plain") -> list[str]:
    return [each.data[form] for each in notebook.cells[number - 1].outputs if each.output_type == "display_data"]


@pytest.mark.slow
def test_cells_in_a_kernel(notebook: Any) -> None:
    """Call sites are cells; an error ends the cell as without us; a cell that runs again is no finding."""
    (text,) = shown(notebook, 2)
    assert "Dimension 0 of `batch['x']` has taken 21 sizes from 20 to 40" in text
    assert "cell [2], line 11" in text and "ipykernel" not in text
    plain, marked = notebook.cells[2].outputs, notebook.cells[3].outputs
    assert [each.output_type for each in plain] == ["error"]
    assert [each.output_type for each in marked] == ["error", "display_data"]
    assert (plain[0].ename, plain[0].evalue) == (marked[0].ename, marked[0].evalue)
    frames = [
        re.findall(r"Cell .*?In\[\d+\].*?line (\d+)", _ANSI.sub("", "".join(each[0].traceback)))
        for each in (plain, marked)
    ]
    assert frames[0] and [int(each) + 1 for each in frames[0]] == [int(each) for each in frames[1]]
    assert "new_function" in shown(notebook, 9)[0] and "Findings" not in shown(notebook, 9)[0]
    assert notebook.cells[8].outputs[0].data["text/plain"] == "'<b>&'"
    snapshot = notebook.cells[9].outputs[0].data
    assert snapshot["text/plain"].startswith("FIX: ") and "was created again" not in snapshot["text/plain"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_outputs_in_a_browser(notebook: Any, theme: str, chrome: Any, tmp_path: Path) -> None:
    """Nothing overflows from phone to desktop, texts have the contrast of AA on both themes, nothing asks the net."""
    nbconvert = pytest.importorskip("nbconvert")
    document, _ = nbconvert.HTMLExporter(theme=theme).from_notebook_node(notebook)
    (tmp_path / "notebook.html").write_text(re.sub(r"<script[^>]*\bsrc=[^>]*></script>", "", document), "utf-8")
    page = chrome.new_page()
    page.goto((tmp_path / "notebook.html").as_uri(), wait_until="domcontentloaded")
    assert page.locator(".jaxobs").count() == 8
    page.evaluate("document.querySelectorAll('.jaxobs details').forEach(each => each.open = true)")
    for width in (360, 768, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        over = page.evaluate(
            "[...document.querySelectorAll('.jaxobs, .jaxobs :not(.wide *)')].filter(each => "
            "each.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(each => each.outerHTML)"
        )
        assert over == [], width
    found = page.evaluate(CONTRAST, [".jaxobs p", ".jaxobs td", ".jaxobs th", ".jaxobs li", ".jaxobs .badge"])
    assert set(found) == {".jaxobs p", ".jaxobs td", ".jaxobs th", ".jaxobs li", ".jaxobs .badge"}
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}
