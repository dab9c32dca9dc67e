import pytest

from jaxobs.testing import assert_gradients_match

PARAMS = {"w": np.ones((8, 2), np.float32)}
requests = [1.0, 2.0]
predict = jax.jit(lambda row: row * 2)


@jax.jit
def train_step(params, batch):
    return params, (batch["x"] @ params["w"]).sum()


def predict_all(requests):
    return [predict(np.float32(each)) for each in requests]


@jax.jit
def ranked(x):
    return jnp.sort(x)


def loss_of(params, batch):
    return jnp.sum(jnp.tanh(batch["x"] @ params["w"]) @ params["v"])


for number in (1, 2, 3, 4):
    example(number)
