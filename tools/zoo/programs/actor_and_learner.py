"""A learner that waits for an actor: the actor calls a policy of its own on another thread."""

import queue
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

episodes = queue.Queue(2)


@jax.jit
def policy(params, seen):
    return jnp.argmax(jnp.tanh(seen @ params[0]) @ params[1], axis=-1)


@jax.jit
def learn(params, state, seen, taken):
    def loss(params):
        scores = jax.nn.log_softmax(jnp.tanh(seen @ params[0]) @ params[1])
        return -jnp.mean(jnp.take_along_axis(scores, taken[..., None], -1))

    value, gradients = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, value


def act(params):
    rng = np.random.default_rng(0)
    for _ in range(50):
        seen = rng.normal(size=(40, 16, 8)).astype(np.float32)
        taken = []
        for moment in seen:
            taken.append(np.asarray(policy(params, moment)))
            time.sleep(0.005)
        episodes.put((seen, np.stack(taken)))
    episodes.put(None)


rng = np.random.default_rng(1)
params = [rng.normal(size=shape).astype(np.float32) for shape in ((8, 64), (64, 4))]
optimizer = optax.adam(0.01)
state = jax.jit(optimizer.init)(params)
threading.Thread(target=act, args=(params,), daemon=True).start()
#: input_wait
while (episode := episodes.get()) is not None:
    #: step
    params, state, value = learn(params, state, *episode)
    params[0].block_until_ready()
    #: input_wait
print(f"loss {value:.3f}")
