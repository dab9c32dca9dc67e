"""Serves a function with BentoML: each worker is a process with an endpoint of its own.

pip install . bentoml
python examples/serve_bentoml.py                      # or: bentoml serve examples.serve_bentoml:Doubled
curl localhost:3000/predict -H 'content-type: application/json' -d '{"size": 3}'   # then http://127.0.0.1:9464/
"""

import argparse
import os

import bentoml
import jax
import numpy as np

import jaxobs

FIRST_PORT = int(os.environ.get("JAXOBS_PORT", "9464"))


@bentoml.service(workers=1)
class Doubled:
    def __init__(self):
        jaxobs.start(port=FIRST_PORT + bentoml.server_context.worker_index - 1)
        self.double = jax.jit(lambda rows: rows * 2)
        for size in (1, 2):
            self.answer(size)  # compiled before the first request

    def answer(self, size: int) -> float:
        return float(np.asarray(self.double(np.ones(size, np.float32))).sum())

    @bentoml.api
    def predict(self, size: int) -> dict:
        with jaxobs.request("doubled") as served:
            return {"sum": self.answer(size), "cold": served.cold}


Doubled.add_asgi_middleware(lambda app: jaxobs.asgi(app))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=3000)
    Doubled.serve_http(host="127.0.0.1", port=parser.parse_args().port)


if __name__ == "__main__":
    main()
