"""A server whose clients send batches of any size: each new size compiles while a client waits."""

import random
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs


@jax.jit
def classify(weights, images):
    for _ in range(6):
        images = jnp.tanh(images @ weights)
    return images.argmax(-1)


weights = jax.random.normal(jax.random.key(0), (256, 256))


def application(environ, start_response):
    images = np.ones((int(environ["QUERY_STRING"]), 256), np.float32)
    classes = np.asarray(classify(weights, images))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(classes.sum()).encode()]


def client(application, seed):
    dice = random.Random(seed)
    while True:
        size = dice.choice((8, 16, 32)) if dice.random() < 0.97 else dice.randint(1, 64)
        environ = {"PATH_INFO": "/classify", "REQUEST_METHOD": "POST", "QUERY_STRING": str(size)}
        for _ in application(environ, lambda status, headers, error=None: None):
            pass
        time.sleep(dice.expovariate(8))


served = jaxobs.wsgi(application)
threads = [threading.Thread(target=client, args=(served, seed), daemon=True) for seed in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
