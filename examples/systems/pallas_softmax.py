"""A Pallas kernel, interpreted: on a TPU or GPU, leave `interpret` out."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

ROWS, COLUMNS, BLOCK = 256, 512, 64


def softmax_kernel(scores, out):
    numerators = jnp.exp(scores[...] - scores[...].max(axis=-1, keepdims=True))
    out[...] = numerators / numerators.sum(axis=-1, keepdims=True)


def softmax(scores):
    block = pl.BlockSpec((BLOCK, COLUMNS), lambda i: (i, 0))
    return pl.pallas_call(
        softmax_kernel,
        out_shape=jax.ShapeDtypeStruct(scores.shape, scores.dtype),
        grid=(ROWS // BLOCK,),
        in_specs=[block],
        out_specs=block,
        interpret=True,
        name="softmax_rows",
    )(scores)


@jax.jit
def attend(queries, keys, values):
    return softmax(queries @ keys.T) @ values


random = np.random.default_rng(0)
queries = random.normal(size=(ROWS, 64)).astype(np.float32)
keys, values = (random.normal(size=(COLUMNS, 64)).astype(np.float32) for _ in range(2))
for number in range(1, 401):
    #: step
    queries = attend(queries, keys, values)
    if number % 100 == 0:
        print(f"{number} layers: norm {jnp.linalg.norm(queries):.4f}")
#: other
