w = jnp.ones(4)


@jax.jit
def train_step(w):
    return w, w.sum()


example(1)
assert [each.name for each in jaxobs.snapshot().watched] == ["loss"]


def train(key, steps):
    return jax.random.normal(key, (steps,))


example(2)
test_training_is_repeatable()
