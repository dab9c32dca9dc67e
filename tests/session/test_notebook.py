"""`%load_ext jaxobs`: cells run as without it, and below them stands what they did."""

import re
from pathlib import Path

import pytest
from helpers import examples, notebooks
from helpers.run_programs import run

STEP = """
import jax, jax.numpy as jnp
@jax.jit
def step(x):
    return jnp.sin(x).sum()
"""
LOAD = "%load_ext jaxobs"
PAGES = sorted({each.page for each in examples.blocks("ipython")})
ORDINARY = [
    "x = 3\nx + 4", "print('printed'); x", "def divide(a, b):\n    return a / b\n\n\ndivide(1, 0)",
    "def broken(:\n    pass", "import asyncio\nawait asyncio.sleep(0)\n'awaited'",
    "from IPython.display import display\ndisplay({'a': 1})", "for i in range(2):\n    i\nx;", "_ih[-1] and 5",
    "raise SystemExit(3)", "raise KeyboardInterrupt",
]  # fmt: skip


def with_mark(cell: str) -> str:
    """The cell as its user writes it to see what it does."""
    return f"%%jaxobs\n{cell}"


def test_a_marked_cell_runs_as_without_us() -> None:
    """Results, prints, displays, `await`, syntax errors, exceptions and their tracebacks; and the next cell runs."""
    plain = notebooks.run(["0", *(f"# %%jaxobs\n{cell}" for cell in ORDINARY), "x"])
    marked = notebooks.run([LOAD, *(with_mark(cell) for cell in ORDINARY), "x"])
    for cell, one, other in zip(ORDINARY, plain[1:], marked[1:], strict=False):
        assert (one.result, one.error) == (other.result, other.error), cell
        assert one.out == other.out, cell
        assert other.texts[: len(one.texts)] == one.texts, cell
        assert len(other.texts) == len(one.texts) + 1, f"{cell}: what it did is shown once, below the rest"
        assert re.match(rf"Cell \[\d+\] {'failed after' if one.error else 'took'} ", other.texts[-1])
    assert marked[-1].result == plain[-1].result == "3"


def test_a_cell_says_what_it_compiled_and_why() -> None:
    """Function, cause, reason, call site by cell and line; the costliest first; results come before it."""
    defined, called = notebooks.run([
        LOAD, with_mark(STEP),
        with_mark("for n in (3, 3, 5):\n    y = step(jnp.ones(n))\ny.shape"),
    ])[1:]  # fmt: skip
    assert "Nothing compiled." in defined.texts[0]
    (text,) = called.texts
    assert called.result == "()"
    assert re.match(r"Cell \[3\] took .*, .* of it compiling: \d programs compiled\.\n", text), text
    assert re.search(r"^  step +shape +1 ", text, re.MULTILINE), text
    assert "`__main__.step`: `x` float32[3] -> float32[5]." in text
    assert re.search(r"cell \[3\], line 3, trace .*, lower .*, compile ", text), text
    assert "<ipython-input" not in text
    seconds = re.findall(r"^  \w.* (\d[\d.]*) (s|ms)$", text.split("most expensive first")[1], re.MULTILINE)
    found = [float(value) * (1e-3 if unit == "ms" else 1) for value, unit in seconds]
    assert len(found) > 2 and found == sorted(found, reverse=True)


def test_a_cell_says_where_its_memory_went() -> None:
    """Bytes of live arrays before and after, and the groups that came, with the lines that made them."""
    shown = notebooks.run([
        LOAD, STEP + "kept = jnp.ones((256, 1024))\nalike = jnp.ones((512, 1024))",
        with_mark("more = [jnp.zeros((512, 1024)) for _ in range(3)]\nkept = None"),
    ])  # fmt: skip
    (text,) = shown[-1].texts
    assert "cpu:0   3 MiB → 8 MiB (+5 MiB)" in text
    assert re.search(r"6 MiB +3 +512×1024 +float32 +cpu:0\n +Created at cell \[3\], line 2", text), text
    assert "256×1024" not in text


def test_hits_of_the_persistent_cache_are_not_compilations(tmp_path: Path) -> None:
    shown = notebooks.run([
        LOAD, STEP + "x = jnp.ones(3)\nstep(x)\njax.clear_caches()", with_mark("step(x);"),
    ], JAX_COMPILATION_CACHE_DIR=str(tmp_path), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")  # fmt: skip
    (text,) = shown[-1].texts
    assert "compiling: 1 program loaded from the persistent cache." in text
    assert re.search(r"^  step +cache_cleared +hit +1 ", text, re.MULTILINE), text


def test_a_cell_that_runs_again_is_no_mistake() -> None:
    made = STEP + "step(jnp.ones(3))"
    *again, verdict = notebooks.run([LOAD, *[with_mark(made)] * 12, "import jaxobs; jaxobs.snapshot().verdict"])
    assert "cause" in again[-1].texts[0] and "new_function" in again[-1].texts[0]
    assert "define them in a cell that you do not rerun." in again[-1].texts[0]
    assert "loop" not in again[-1].texts[0]
    assert "OK" in verdict.out
    looped = f"for _ in range(6):\n{'    '.join(f'    {made}'.splitlines(keepends=True))}"
    shown = notebooks.run([LOAD, with_mark(looped)])
    assert "was created again" in shown[-1].texts[0].split("Findings")[1]


def test_findings_belong_to_the_cells_that_brought_them() -> None:
    """A cell that adds nothing to a finding does not show it."""
    shown = notebooks.run([
        LOAD, STEP + "x = [jnp.ones(n) for n in range(1, 20)]",
        with_mark("for each in x: step(each)"), with_mark("step(x[0])"), with_mark("step(jnp.ones(31))"),
    ])  # fmt: skip
    assert "Dimension 0 of `x` has taken" in shown[2].texts[0].split("Findings")[1]
    assert "Findings" not in shown[3].texts[0]
    assert "Dimension 0 of `x` has taken 20 sizes" in shown[4].texts[0].split("Findings")[1]


def test_other_cells_get_a_line_if_they_compile_for_long() -> None:
    """With `%jaxobs on`, until `%jaxobs off`; one that compiles nothing gets none."""
    shown = notebooks.run([
        LOAD, STEP, "step(1.0)", "%jaxobs on 0", "step(1)", "step(1)", "%jaxobs last", "%jaxobs off", "step(True)",
    ])  # fmt: skip
    silent, spoken, nothing, last, off = shown[2], shown[4], shown[5], shown[6], shown[8]
    assert silent.texts == nothing.texts == off.texts == ()
    (line,) = spoken.texts
    assert re.match(r"jaxobs: Cell \[5\] took .* 1 program compiled. `step` .*\(dtype\)", line.replace("\n", " "))
    assert last.texts[0].startswith("Cell [5] took ") and "`x` " in last.texts[0]


def test_line_magics() -> None:
    """Each shows what its name says; a name that is misspelt is no traceback."""
    shown = notebooks.run([
        LOAD, STEP + "y = step(jnp.ones(3))", "%jaxobs", "%jaxobs verdict", "%jaxobs functions", "%jaxobs memory",
        "%jaxobs verdct", "%jaxobs on soon",
    ])  # fmt: skip
    summary, verdict, functions, memory, misspelt, soon = shown[2:]
    assert summary.texts[0].startswith("OK: Nothing to fix") and "Where the time went" in summary.texts[0]
    assert verdict.texts[0].startswith("OK: Nothing to fix")
    assert re.search(r"^  step +1 ", functions.texts[0], re.MULTILINE)
    assert "Largest groups of live arrays" in memory.texts[0]
    assert (misspelt.error, soon.error) == ("UsageError", "UsageError")


def test_snapshots_are_short() -> None:
    """In a notebook without the extension, as text and as HTML; and at any prompt."""
    shown = notebooks.run(["import jaxobs; jaxobs.install()", STEP + "y = step(jnp.ones(3))", "jaxobs.snapshot()",
                           "from IPython.display import display; display(jaxobs.snapshot())"])  # fmt: skip
    assert "OK: Nothing to fix" in shown[2].out and len(shown[2].out) < 1500
    assert "<table>" in shown[3].html[0] and "<script" not in shown[3].html[0]
    printed = run("import jaxobs; jaxobs.install(); import jax; jax.jit(abs)(1); print(jaxobs.snapshot())").stdout
    assert re.fullmatch(r"<Snapshot of python, pid \d+: 1 compilation; ok: Nothing to fix: .*>\n", printed)


def test_the_time_between_cells_is_idle() -> None:
    """The seconds for which nobody runs anything are not `unattributed`."""
    shown = notebooks.run([
        LOAD, "import time\nfrom jaxobs.state import store\nfrom jaxobs.state.wall import Wall\n"
        "wall = store.current().part(Wall)\nbefore = wall.seconds()['idle']",
        "after = wall.seconds()['idle']\n(before > 0, after > before, wall.category)",
    ])  # fmt: skip
    assert shown[-1].result == "(True, True, 'unattributed')"


def test_unloading_leaves_nothing() -> None:
    """Magics, events, transformers and formatters go; what somebody else installed stays installed."""
    ours = """
import jaxobs
shell = get_ipython()
def ours():
    formatters = shell.display_formatter.formatters
    return (
        sorted(kind for kind in ("line", "cell") if "jaxobs" in shell.magics_manager.magics[kind]),
        [len(callbacks) for callbacks in shell.events.callbacks.values()],
        len(shell.input_transformers_cleanup),
        len(formatters["text/html"].type_printers), len(formatters["text/plain"].type_printers),
        jaxobs.snapshot and __import__("jaxobs.state.store").state.store.current().installed,
    )
before = ours()
"""
    for first in ("", "jaxobs.install()\nbefore = ours()\nshell.display_formatter.format(jaxobs.snapshot());"):
        shown = notebooks.run([ours, first or "0", LOAD, "loaded = ours()", "%unload_ext jaxobs",
                               "after = ours()\nbefore[:3] + before[5:] == after[:3] + after[5:], loaded[0], after[0]",
                               "%load_ext jaxobs", with_mark("5")])  # fmt: skip
        assert shown[5].result == "(True, ['cell', 'line'], [])"
        assert shown[7].result == "5" and shown[7].texts[0].startswith("Cell [8] took ")


def test_switched_off_it_only_takes_the_mark_away() -> None:
    """With `JAXOBS_DISABLED=1` a notebook that uses the magics runs on."""
    shown = notebooks.run([LOAD, with_mark("5"), "%jaxobs"], JAXOBS_DISABLED="1")
    assert (shown[1].result, shown[1].texts) == ("5", ())
    assert shown[2].texts == ("jaxobs is off: `JAXOBS_DISABLED` is set.",)


@pytest.mark.parametrize("broken", ["notebook.cell", "formatters.publish"])
def test_a_failure_of_ours_is_not_the_cells(broken: str) -> None:
    fail = f"from jaxobs.session.notebook import extension\nextension.{broken} = None"
    shown = notebooks.run([
        LOAD, fail, with_mark("5"), "import jaxobs; jaxobs.snapshot().observer.internal_errors",
    ], JAXOBS_RAISE_INTERNAL_ERRORS="")  # fmt: skip
    assert (shown[2].result, shown[2].error) == ("5", None)
    assert shown[3].result == "{'notebook.after': 1}"


def test_other_cell_magics_may_stand_beside_it() -> None:
    """Above it and below it; and it can be called as a magic."""
    shown = notebooks.run([
        LOAD, "%%time\n%%jaxobs\n6", "%%jaxobs\n%%capture said\nprint(7)", "said.stdout",
        "get_ipython().run_cell_magic('jaxobs', '', 'z = 8')\nz", "get_ipython().run_cell('%%jaxobs\\n9')",
        "%%jaxobs?",
    ])  # fmt: skip
    assert "Wall time" in shown[1].out and "Cell [2] took" in shown[1].texts[0]
    assert shown[2].texts[0].startswith("Cell [3] took") and shown[3].result == r"'7\n'"
    assert shown[4].result == "8" and "took" in shown[4].texts[0]
    assert shown[5].error is None and shown[5].texts[0].startswith("This cell took")
    assert shown[6].error is None


@pytest.mark.parametrize("page", PAGES)
def test_the_cells_of_a_page_run(page: str) -> None:
    cells = [each.text.rstrip("\n") for each in examples.blocks("ipython") if each.page == page]
    for cell, shown in zip(cells, notebooks.run(cells), strict=True):
        assert shown.error is None, f"{cell}\n{shown.out}"
        assert bool(shown.texts) >= cell.startswith("%%jaxobs")


def test_what_the_allocator_reports_is_shown() -> None:
    allocator = """
from jaxobs import internals
kib = 2**10
told = {"in_use_bytes": 10 * kib, "peak_bytes": 40 * kib}
internals.allocator = lambda device: dict(told) if device.id == 0 else {}
"""
    shown = notebooks.run([
        LOAD, allocator, with_mark("told['in_use_bytes'] = 30 * kib"),
        with_mark("told.update(in_use_bytes=20 * kib, peak_bytes=64 * kib)"),
        "import jax; jax.numpy.ones(1)", with_mark("told['in_use_bytes'] = 30 * kib"),
        with_mark("told.update(in_use_bytes=20 * kib, peak_bytes=80 * kib)"),
    ])  # fmt: skip
    assert "Memory" not in shown[2].texts[0], "no backend is awake"
    assert re.search(r"cpu:0 +4 B, unchanged +20 KiB → 30 KiB \(\+10 KiB\)$", shown[5].texts[0], re.MULTILINE)
    assert re.search(r"in use +new peak\n.*30 KiB → 20 KiB \(−10 KiB\) +80 KiB$", shown[6].texts[0])
