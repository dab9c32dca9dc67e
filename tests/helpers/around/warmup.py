jaxobs.install(event_log="events.jsonl")
params, state, batch = {"w": jnp.ones((784, 10))}, jnp.ones(3), jnp.ones(3)


@jax.jit
def predict(params, images):
    return images @ params["w"]


@jax.jit
def step(state, batch, train):
    return state + batch * train


predict(params, jnp.ones((2, 784)))
example(1)


def new_state():
    return jnp.ones(3)


def batch(number):
    return jnp.ones(number)


example(2)
assert [each.shape for each in example_arguments()] == [(3,), (1,)]
