"""A mixture of experts on eight devices, one expert on each, with the parameters placed nowhere at first."""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

EXPERTS, WIDTH, HIDDEN, TOKENS = 8, 64, 128, 1024
mesh = jax.make_mesh((EXPERTS,), ("expert",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def init(key):
    router, up, down = jax.random.split(key, 3)
    return {
        "router": jax.random.normal(router, (WIDTH, EXPERTS)) * 0.1,
        "up": jax.random.normal(up, (EXPERTS, WIDTH, HIDDEN)) / np.sqrt(WIDTH),
        "down": jax.random.normal(down, (EXPERTS, HIDDEN, WIDTH)) / np.sqrt(HIDDEN),
    }


def layer(parameters, tokens):
    """Each device routes its tokens, sends them to their experts, and gets them back."""
    here = tokens.shape[0]
    capacity = 2 * here // EXPERTS
    gates = jax.nn.softmax(tokens @ parameters["router"])
    expert, gate = jnp.argmax(gates, -1), jnp.max(gates, -1)
    one_hot = jax.nn.one_hot(expert, EXPERTS, dtype=jnp.int32)
    slot = jnp.sum(jnp.cumsum(one_hot, 0) * one_hot, -1) - 1
    sent = jnp.zeros((EXPERTS, capacity, WIDTH)).at[expert, slot].set(tokens, mode="drop")
    came = jax.lax.all_to_all(sent, "expert", 0, 0, tiled=True)
    hidden = jax.nn.gelu(came.reshape(-1, WIDTH) @ parameters["up"][0])
    back = (hidden @ parameters["down"][0]).reshape(EXPERTS, capacity, WIDTH)
    back = jax.lax.all_to_all(back, "expert", 0, 0, tiled=True)
    return back.at[expert, slot].get(mode="fill", fill_value=0) * gate[:, None]


SPECS = {"router": P(), "up": P("expert"), "down": P("expert")}
moe = jax.shard_map(layer, mesh=mesh, in_specs=(SPECS, P("expert")), out_specs=P("expert"))
optimizer = optax.adam(1e-3)


@jax.jit
def train_step(parameters, state, tokens, targets):
    def loss_fn(parameters):
        return jnp.mean((moe(parameters, tokens) - targets) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(parameters)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss


parameters = init(jax.random.key(0))
state = jax.jit(optimizer.init)(parameters)
random = np.random.default_rng(0)
rotation = np.linalg.qr(random.normal(size=(WIDTH, WIDTH)))[0]
rows = NamedSharding(mesh, P("expert"))
#: step
for number in range(1, 201):
    tokens = random.normal(size=(TOKENS, WIDTH)).astype(np.float32)
    targets = (np.abs(tokens) @ rotation).astype(np.float32)
    tokens, targets = jax.device_put((tokens, targets), rows)
    parameters, state, loss = train_step(parameters, state, tokens, targets)
    if number % 50 == 0:
        print(f"step {number}: loss {loss:.4f}")
