"""Tokamax's autotuner over the block sizes of an interpreted Pallas kernel, and then the fastest of them in a loop."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import tokamax
from jax.experimental import pallas as pl
from tokamax._src.autotuning.autotuner import Autotuner  # `tokamax.autotune` has no choice of kernels on a CPU

ROWS, COLUMNS = 512, 64


def gelu_kernel(x, out):
    out[...] = x[...] * 0.5 * (1.0 + jnp.tanh(0.7978845608 * (x[...] + 0.044715 * x[...] ** 3)))


def gelu(x, *, block):
    spec = pl.BlockSpec((block, COLUMNS), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = pl.pallas_call(
        gelu_kernel, out_shape=shape, grid=(ROWS // block,), in_specs=[spec], out_specs=spec, interpret=True
    )
    return call(x)


x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)
tuned = Autotuner().autotune(
    lambda block: functools.partial(gelu, block=block), {2**power for power in range(1, 10)}, x
)
best = tuned.fastest_config
print(f"{len(tuned)} block sizes tried")
scale = np.ones(COLUMNS, np.float32)


@jax.jit
def apply(x):
    return gelu(tokamax.layer_norm(x, scale, None, implementation="xla"), block=best)


for _ in range(200):
    #: step
    x = apply(x)
#: other
print(f"mean {jnp.mean(x):.4f}")
