"""Serves a function with Ray Serve: each replica is a process with an endpoint of its own.

pip install . 'ray[serve]'
python examples/serve_ray.py
curl 'localhost:8000/?size=3'                         # then http://127.0.0.1:9464/
"""

import argparse
import time

import numpy as np
from ray import serve
from starlette.requests import Request


@serve.deployment
class Doubled:
    def __init__(self, endpoint_port: int):
        import jax

        import jaxobs

        self.endpoint = jaxobs.start(port=endpoint_port)
        self.request = jaxobs.request
        self.double = jax.jit(lambda rows: rows * 2)
        for size in (1, 2):
            self.answer(size)  # compiled before the first request

    def answer(self, size: int) -> float:
        return float(np.asarray(self.double(np.ones(size, np.float32))).sum())

    async def __call__(self, request: Request) -> dict:
        with self.request("doubled") as served:
            return {"sum": self.answer(int(request.query_params["size"])), "cold": served.cold}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--endpoint-port", type=int, default=9464)
    options = parser.parse_args()
    serve.start(http_options={"port": options.port})
    serve.run(Doubled.bind(options.endpoint_port))
    print(f"serving at http://127.0.0.1:{options.port}/", flush=True)
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        serve.shutdown()


if __name__ == "__main__":
    main()
