"""Serves a small classifier with FastAPI: requests padded to few batch sizes, which are compiled before the first one.

pip install . fastapi uvicorn
python examples/serve_fastapi.py                      # with --warm 1,2 larger batches start cold
curl localhost:8000/predict -H 'content-type: application/json' -d '{"rows": [[0.5, 0.1, 0.7, 0.2]]}'
jaxobs top                                            # in another terminal; or open http://127.0.0.1:9464/
"""

import argparse
import bisect
import itertools
from contextlib import asynccontextmanager

import jax
import jax.numpy as jnp
import numpy as np
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import jaxobs

SIZES = (1, 2, 4, 8, 16, 32)
FEATURES, HIDDEN, CLASSES = 4, 256, 3


@jax.jit
def classify(params, rows):
    for weight in params[:-1]:
        rows = jnp.tanh(rows @ weight)
    return jnp.argmax(rows @ params[-1], axis=-1)


def make_params():
    widths = [FEATURES, *[HIDDEN] * 6, CLASSES]
    random = np.random.default_rng(0)
    return [random.normal(size=pair).astype(np.float32) / pair[0] ** 0.5 for pair in itertools.pairwise(widths)]


class Question(BaseModel):
    rows: list[list[float]]


def make_app(warm):
    params = jax.device_put(make_params())

    @asynccontextmanager
    async def lifespan(app):
        shapes = (jax.ShapeDtypeStruct((size, FEATURES), "float32") for size in warm)
        jaxobs.warmup(classify, *((params, shape) for shape in shapes))
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/predict")
    def predict(question: Question):
        rows = np.asarray(question.rows, np.float32)
        if rows.shape[1:] != (FEATURES,) or len(rows) > SIZES[-1]:
            raise HTTPException(422, f"`rows` has shape {rows.shape}: at most {SIZES[-1]} rows of {FEATURES} numbers.")
        size = SIZES[bisect.bisect_left(SIZES, len(rows))]
        padded = np.zeros((size, FEATURES), np.float32)
        padded[: len(rows)] = rows
        with jaxobs.request("model", batch=(len(rows), size)) as served:
            classes = np.asarray(classify(params, padded))[: len(rows)]
            return {"classes": classes.tolist(), "cold": served.cold}

    return jaxobs.asgi(app)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--warm", default=",".join(map(str, SIZES)), help="batch sizes to compile before; empty: none")
    options = parser.parse_args()
    jaxobs.start()
    warm = [int(size) for size in options.warm.split(",") if size]
    uvicorn.run(make_app(warm), host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
