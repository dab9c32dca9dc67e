"""Serves a program that `jax.export` saved: StableHLO for a few batch sizes, and its weights as Orbax's checkpoint.

pip install . fastapi uvicorn flatbuffers orbax-checkpoint
python examples/serve_exported.py --export model      # writes the programs and the weights: needs the model's code
python examples/serve_exported.py model               # serves them: needs JAX and Orbax
curl localhost:8000/predict -H 'content-type: application/json' -d '{"rows": [[0.5, 0.1, 0.7, 0.2]]}'
"""

import argparse
import bisect
from contextlib import asynccontextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax import export

import jaxobs

SIZES = (1, 4, 16)


def classify(weights, rows):
    return jnp.argmax(jnp.tanh(rows @ weights["in"]) @ weights["out"], axis=-1)


def write(folder):
    random = np.random.default_rng(0)
    weights = {"in": random.normal(size=(4, 256)), "out": random.normal(size=(256, 3))}
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    folder.mkdir(parents=True, exist_ok=True)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder.absolute() / "weights", weights, force=True)
    for size in SIZES:
        program = export.export(jax.jit(classify))(weights, jax.ShapeDtypeStruct((size, 4), "float32"))
        (folder / f"classify-{size}.jax").write_bytes(program.serialize())


def read(folder):
    with ocp.StandardCheckpointer() as checkpointer:
        weights = checkpointer.restore(folder.absolute() / "weights")
    files = {size: folder / f"classify-{size}.jax" for size in SIZES}
    programs = {size: export.deserialize(bytearray(file.read_bytes())) for size, file in files.items()}
    return weights, {size: jax.jit(program.call) for size, program in programs.items()}


def make_app(folder, warm):
    from fastapi import FastAPI, HTTPException
    from pydantic import BaseModel

    class Question(BaseModel):
        rows: list[list[float]]

    weights, programs = read(folder)

    @asynccontextmanager
    async def lifespan(app):
        for size in warm:  # a saved program is not compiled: each compiles in its first call
            programs[size](weights, np.zeros((size, 4), np.float32))
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/predict")
    def predict(question: Question):
        rows = np.asarray(question.rows, np.float32)
        if rows.shape[1:] != (4,) or len(rows) > SIZES[-1]:
            raise HTTPException(422, f"`rows` has shape {rows.shape}: at most {SIZES[-1]} rows of 4 numbers.")
        size = SIZES[bisect.bisect_left(SIZES, len(rows))]
        padded = np.zeros((size, 4), np.float32)
        padded[: len(rows)] = rows
        with jaxobs.request("model", batch=(len(rows), size)) as served:
            classes = np.asarray(programs[size](weights, padded))[: len(rows)]
            return {"classes": classes.tolist(), "cold": served.cold}

    return jaxobs.asgi(app)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--export", action="store_true", help="write the programs instead of serving them")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--warm", default=",".join(map(str, SIZES)), help="batch sizes to compile before; empty: none")
    options = parser.parse_args()
    if options.export:
        write(options.folder)
        return
    import uvicorn

    jaxobs.start()
    warm = [int(size) for size in options.warm.split(",") if size]
    uvicorn.run(make_app(options.folder, warm), host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
