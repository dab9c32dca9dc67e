loader, params = [{"tokens": np.ones((2, 8))}] * 3, jnp.ones(())
train_step = jax.jit(lambda params, batch: params + batch["tokens"].sum())
example(1)
train(params, loader[0])
[loop] = jaxobs.snapshot().loops
assert loop.steps == 7, loop
