"""Training as one program, in the style of PureJaxRL: epochs and batches are scans, and `vmap` trains three seeds."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

CONFIG = {"rate": 3e-3, "epochs": 30, "batches": 16, "batch": 32}


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.tanh(nn.Dense(32, kernel_init=nn.initializers.lecun_normal())(x))
        return nn.Dense(1)(x)[..., 0]


def make_train(config):
    network = Network()
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(config["rate"]))

    def train(key):
        key, first, draw = jax.random.split(key, 3)
        params = network.init(first, jnp.zeros((1, 8)))
        x = jax.random.normal(draw, (config["batches"] * config["batch"], 8))
        y = jnp.sin(x.sum(-1))

        def update(carry, batch):
            def loss_fn(params):
                return jnp.mean((network.apply(params, batch[0]) - batch[1]) ** 2)

            params, state = carry
            loss, gradients = jax.value_and_grad(loss_fn)(params)
            updates, state = optimizer.update(gradients, state)
            return (optax.apply_updates(params, updates), state), loss

        def epoch(carry, key):
            order = jax.random.permutation(key, x.shape[0])
            batches = jax.tree.map(lambda a: a[order].reshape(config["batches"], config["batch"], *a.shape[1:]), (x, y))
            carry, losses = jax.lax.scan(update, carry, batches)
            return carry, losses.mean()

        keys = jax.random.split(key, config["epochs"])
        _, losses = jax.lax.scan(epoch, (params, optimizer.init(params)), keys)
        return losses

    return train


keys = np.stack([np.asarray([0, seed], np.uint32) for seed in range(3)])
train = jax.jit(jax.vmap(make_train(CONFIG)))
losses = np.asarray(train(keys))
for seed, each in enumerate(losses):
    print(f"seed {seed}: loss {each[0]:.2f} -> {each[-1]:.3f}")
