"""Saves its state with Orbax every 30 steps while it trains, and goes on from the last one after a restore."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

WIDTH, DEPTH = 512, 4
optimizer = optax.adam(1e-4)


@jax.jit
def init(key):
    keys = jax.random.split(key, DEPTH)
    parameters = {f"layer{i}": jax.random.normal(k, (WIDTH, WIDTH)) / jnp.sqrt(WIDTH) for i, k in enumerate(keys)}
    return {"parameters": parameters, "optimizer": optimizer.init(parameters), "step": jnp.zeros((), jnp.int32)}


@jax.jit
def train_step(state, x):
    def loss_fn(parameters):
        y = x
        for i in range(DEPTH):
            y = jnp.tanh(y @ parameters[f"layer{i}"])
        return jnp.mean((y - x) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(state["parameters"])
    updates, opt = optimizer.update(gradients, state["optimizer"])
    parameters = optax.apply_updates(state["parameters"], updates)
    return {"parameters": parameters, "optimizer": opt, "step": state["step"] + 1}, loss


def train(state, steps, manager, random):
    for _ in range(steps):
        #: input_wait
        x = random.normal(size=(64, WIDTH)).astype(np.float32)
        #: step
        state, loss = train_step(state, x)
        step = int(state["step"])
        if step % 30 == 0:
            print(f"step {step}: loss {loss:.5f}")
            #: checkpoint
            manager.save(step, args=ocp.args.StandardSave(state))
    #: other
    return state


random = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder) as manager:
    state = train(init(jax.random.key(0)), 120, manager, random)
    #: checkpoint
    manager.wait_until_finished()
    state = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(state))
    #: other
    print(f"restored step {int(state['step'])}")
    state = train(state, 60, manager, random)
    #: checkpoint
    manager.wait_until_finished()
    #: other
