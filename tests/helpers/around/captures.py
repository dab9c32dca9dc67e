import os


jaxobs.install(capture_directory="captures")
params, batches = jnp.ones(8), [jnp.ones(8)] * 8


@jaxobs.jit
def train_step(params, batch):
    return params + batch


example(1)
assert os.path.exists(trace.path), trace
