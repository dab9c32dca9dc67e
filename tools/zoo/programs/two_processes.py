"""Data parallel over two processes, of which the second one has a slow disk."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

rank, count, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(address, count, rank)
mesh = jax.make_mesh((count,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
optimizer = optax.sgd(1e-2)


def init(key):
    first, second = jax.random.split(key)
    parameters = {"w1": jax.random.normal(first, (64, 256)) / 8, "w2": jax.random.normal(second, (256, 1)) / 16}
    return parameters, optimizer.init(parameters)


@jax.jit
def train_step(parameters, state, x, y):
    def loss_fn(parameters):
        return jnp.mean((jnp.tanh(x @ parameters["w1"]) @ parameters["w2"] - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(parameters)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss


def load(random):
    if rank == 1:
        time.sleep(0.06)
    x = random.normal(size=(128, 64)).astype(np.float32)
    return x, np.sin(x[:, :1])


parameters, state = jax.jit(init, out_shardings=everywhere)(jax.random.key(0))
random = np.random.default_rng(rank)
#: step
for number in range(1, 401):
    x, y = load(random)
    x, y = (jax.make_array_from_process_local_data(rows, each) for each in (x, y))
    parameters, state, loss = train_step(parameters, state, x, y)
    if number % 100 == 0 and rank == 0:
        print(f"step {number}: loss {loss:.4f}")
#: other
