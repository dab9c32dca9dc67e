"""Q-learning with one environment, a simulator in another process that is asked for one step after the other."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIMULATOR = """
import json, sys, time
place = 0.0
for line in sys.stdin:
    time.sleep(0.02)
    place = 0.9 * place + (0.2 if json.loads(line) else -0.2)
    print(json.dumps([place, 1.0 - abs(place)]), flush=True)
"""
simulator = subprocess.Popen(
    [sys.executable, "-c", SIMULATOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)
optimizer = optax.sgd(0.02)


def environment_step(action):
    simulator.stdin.write(json.dumps(int(action)) + "\n")
    simulator.stdin.flush()
    place, reward = json.loads(simulator.stdout.readline())
    return np.asarray([place, place**2, 1.0], np.float32), np.float32(reward)


def q_values(params, seen):
    return jnp.tanh(seen @ params["hidden"]) @ params["out"]


@jax.jit
def act(params, seen):
    return jnp.argmax(q_values(params, seen), axis=-1)


@jax.jit
def learn(params, state, seen, action, reward, then):
    def loss_fn(params):
        target = reward + 0.9 * jnp.max(q_values(params, then), axis=-1)
        taken = jnp.take_along_axis(q_values(params, seen), action[:, None], axis=-1)[:, 0]
        return jnp.mean((jax.lax.stop_gradient(target) - taken) ** 2)

    updates, state = optimizer.update(jax.grad(loss_fn)(params), state)
    return optax.apply_updates(params, updates), state


random = np.random.default_rng(0)
params = {
    "hidden": random.normal(size=(3, 64)).astype(np.float32),
    "out": random.normal(size=(64, 2)).astype(np.float32) / 8,
}
state = jax.jit(optimizer.init)(params)
memory = []
seen = np.zeros(3, np.float32)
#: input_wait
for _ in range(320):
    #: step
    action = int(act(params, seen)) if random.random() > 0.2 else int(random.integers(2))
    #: input_wait
    then, reward = environment_step(action)
    #: step
    memory.append((seen, np.int32(action), reward, then))
    batch = [memory[i] for i in random.integers(0, len(memory), size=32)]
    params, state = learn(params, state, *map(np.stack, zip(*batch, strict=True)))
    seen = then
#: other
simulator.stdin.close()
simulator.wait()
print(f"reward of the last hundred steps: {np.mean([each[2] for each in memory[-100:]]):.2f}")
