"""A server of one process that compiles for the sizes of what it is sent, until jaxobs has judged them.

python sizes.py MODE
"""

from __future__ import annotations

import random
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs

MODE = sys.argv[1]
"""`warmed`: a grid of buckets, compiled at the start. `ragged`: sizes as they come, no two alike."""
BUCKETS = range(16, 16 * 31, 16)
MOST = 4000


@jax.jit  # type: ignore[untyped-decorator]
def answer(x: jax.Array) -> jax.Array:
    return jnp.tanh(x).sum()


def judged() -> bool:
    found = [each for each in jaxobs.snapshot().findings if each.finding == "unbounded_shapes"]
    return all(each.ended for each in found)


def main() -> None:
    chance = random.Random(0)
    if MODE == "warmed":
        for size in BUCKETS:
            answer(np.ones((size, 8), np.float32))
    for number in range(MOST if MODE == "warmed" else 40):
        size = chance.choice(BUCKETS) if MODE == "warmed" else 33 + 7 * number
        float(answer(np.ones((size, 8), np.float32)))
        time.sleep(0.01)
        if number > 200 and number % 50 == 0 and judged():
            return


main()
