"""The live page shows who waits for whom, and which watched values are not finite."""

import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.page_fixtures import Opener, chrome, opened, serving, text
from helpers.waiting import until

import jaxobs

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name


def batches(seconds: float) -> Iterator[Any]:
    """Random numbers in the place of images, each after so long."""
    random = np.random.default_rng(0)
    for _ in range(60):
        time.sleep(seconds)
        yield {"image": random.normal(size=(32, 64)).astype(np.float32)}


@pytest.mark.usefixtures("fresh")
def test_a_real_program_is_told_as_its_snapshot_has_it(opened: Opener) -> None:
    """A slow loader of random numbers, a loss that turns NaN: verdict, wait, look, and the first call."""
    step = jax.jit(lambda w, batch: (w, (batch["image"] @ w).sum()))
    w = jnp.ones((64, 4))
    for number, batch in enumerate(jaxobs.data(batches(0.02), "train")):
        w, loss = step(w, batch)
        jaxobs.watch(loss=float(loss) if number < 40 else float("nan"), steady=1.0)
    jaxobs.install()  # its last sample looks at what is left
    until(lambda: all(each.checked >= 60 for each in jaxobs.snapshot().watched))
    snapshot = jaxobs.snapshot()
    (state,) = snapshot.inputs
    assert state.verdict == "input"
    with serving(snapshot, []) as server:
        page = opened(server)
        shown = text(page, '[data-input="train"]')
        assert "input-bound" in shown and "60 batches" in shown
        widths = page.locator('[data-input="train"] .bar > i').evaluate_all(
            "all => all.map(each => [each.dataset.part, parseFloat(each.style.width)])"
        )
        assert [name for name, _ in widths] == ["waited for input", "all else"]
        assert widths[0][1] == pytest.approx(100 * (state.share or 0), abs=0.1)
        assert text(page, "#watched-count") == "2, 1 not finite"
        rows = page.locator("#watched-rows > tr")
        assert [" ".join(each.split()) for each in rows.all_inner_texts()] == [
            "loss not finite 60 20 40 —", "steady finite 60 0 — —"
        ]  # fmt: skip
