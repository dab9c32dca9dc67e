"""Serves a tiny language model: a greedy decoder with a KV cache and continuous batching, streaming its tokens.

pip install . fastapi uvicorn
python examples/serve_llm.py                          # with --cold the first requests wait for the compiler
curl -N localhost:8000/generate -H 'content-type: application/json' -d '{"prompt": "Once upon", "max_tokens": 20}'
jaxobs top                                            # in another terminal; or open http://127.0.0.1:9464/

Its weights are random and so is its text; what is served, and what jaxobs says of it, is as with a large one.
"""

import argparse
import asyncio
import bisect
import contextvars
import functools
import json
import queue
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import jaxobs

VOCABULARY, WIDTH, HEADS, LAYERS = 256, 64, 4, 2
SLOTS, LENGTH = 4, 256
"""Requests in a batch, and tokens of each, prompt included."""
PROMPTS = (16, 64, 128)
"""Sizes that prompts are padded to."""
END = 0


def make_params():
    random = np.random.default_rng(0)

    def matrix(rows, columns):
        return jnp.asarray(random.normal(size=(rows, columns)) / rows**0.5, jnp.float32)

    layers = [
        {"qkv": matrix(WIDTH, 3 * WIDTH), "out": matrix(WIDTH, WIDTH), "up": matrix(WIDTH, 4 * WIDTH),
         "down": matrix(4 * WIDTH, WIDTH)}
        for _ in range(LAYERS)
    ]  # fmt: skip
    return {"embed": 8 * matrix(VOCABULARY, WIDTH), "position": 8 * matrix(LENGTH, WIDTH), "layers": layers}


def empty_cache(slots):
    return jnp.zeros((LAYERS, 2, slots, LENGTH, WIDTH))


def forward(params, cache, tokens, positions):
    """Tokens at these positions, row by row: the next token of each, and the cache with their keys and values."""

    def heads(x):
        return x.reshape(*x.shape[:-1], HEADS, WIDTH // HEADS)

    rows = jnp.arange(tokens.shape[0])[:, None]
    seen = jnp.arange(LENGTH)[None, None, :] <= positions[:, :, None]
    x = params["embed"][tokens] + params["position"][positions]
    for number, layer in enumerate(params["layers"]):
        q, k, v = jnp.split(x @ layer["qkv"], 3, axis=-1)
        cache = cache.at[number, 0, rows, positions].set(k).at[number, 1, rows, positions].set(v)
        scores = jnp.einsum("bthd,bshd->bhts", heads(q), heads(cache[number, 0])) / (WIDTH // HEADS) ** 0.5
        weights = jax.nn.softmax(jnp.where(seen[:, None], scores, -jnp.inf))
        x += jnp.einsum("bhts,bshd->bthd", weights, heads(cache[number, 1])).reshape(x.shape) @ layer["out"]
        x += jax.nn.gelu(x @ layer["up"]) @ layer["down"]
        x /= jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)
    return jnp.argmax(x @ params["embed"].T, axis=-1), cache


@functools.partial(jax.jit, donate_argnums=1)
def prefill(params, cache, slot, prompt, length):
    """The first token after a padded prompt, and the cache with the prompt in a slot."""
    own = jnp.zeros_like(cache[:, :, :1])
    following, own = forward(params, own, prompt[None], jnp.arange(prompt.size)[None])
    return following[0, length - 1], jax.lax.dynamic_update_slice_in_dim(cache, own, slot, axis=2)


@functools.partial(jax.jit, donate_argnums=1)
def decode(params, cache, tokens, positions):
    """The next token of every slot."""
    following, cache = forward(params, cache, tokens[:, None], positions[:, None])
    return following[:, 0], cache


class Job:
    """A request on its way through the engine."""

    def __init__(self, prompt, max_tokens):
        self.prompt, self.left = prompt, max_tokens
        self.served = jaxobs.request.current()  # the one that `jaxobs.asgi` opened
        self.context = contextvars.copy_context()  # what compiles in it belongs to that request
        self.asked, self.given_up = time.perf_counter(), False
        self.loop, self.tokens = asyncio.get_running_loop(), asyncio.Queue()

    def put(self, token):
        self.loop.call_soon_threadsafe(self.tokens.put_nowait, token)


class Engine:
    """A thread that computes up to `SLOTS` requests together, a token of each at a time."""

    def __init__(self, params, warm):
        self.params, self.cache = params, empty_cache(SLOTS)
        self.tokens, self.positions = np.zeros(SLOTS, np.int32), np.zeros(SLOTS, np.int32)
        self.jobs, self.waiting = [None] * SLOTS, queue.Queue()
        if warm:
            for size in PROMPTS:
                _, self.cache = prefill(params, self.cache, 0, np.zeros(size, np.int32), 1)
            _, self.cache = decode(params, self.cache, self.tokens, self.positions)
        threading.Thread(target=self.run, name="engine", daemon=True).start()

    def run(self):
        while True:
            while None in self.jobs and (job := self.next()) is not None:
                job.context.run(self.admit, job, self.jobs.index(None))
            self.tell()
            self.step()

    def next(self):
        """The next request that waits; if there is nothing to do, the engine waits for one."""
        idle = not any(self.jobs)
        if idle:
            self.tell()
        try:
            return self.waiting.get(block=idle)
        except queue.Empty:
            return None

    def tell(self):
        busy = [job is not None for job in self.jobs]
        used = float(self.positions[busy].sum()) / (SLOTS * LENGTH)
        jaxobs.engine(running=sum(busy), waiting=self.waiting.qsize(), kv_cache=used)

    def admit(self, job, slot):
        job.served.queued(time.perf_counter() - job.asked)
        job.served.batch = (sum(each is not None for each in self.jobs) + 1, SLOTS)
        padded = np.zeros(PROMPTS[bisect.bisect_left(PROMPTS, len(job.prompt))], np.int32)
        padded[: len(job.prompt)] = job.prompt
        token, self.cache = prefill(self.params, self.cache, slot, padded, len(job.prompt))
        self.jobs[slot], self.positions[slot] = job, len(job.prompt) - 1
        token = int(token)  # waits for the device
        job.served.first_token()
        job.served.tokens(input=len(job.prompt))
        self.take(slot, token)

    def step(self):
        tokens, self.cache = decode(self.params, self.cache, self.tokens, self.positions)
        for slot, token in enumerate(np.asarray(tokens)):
            if self.jobs[slot] is not None:
                self.take(slot, int(token))

    def take(self, slot, token):
        """Gives a token to whoever waits for it; its slot is free again if it was the last one."""
        job = self.jobs[slot]
        self.tokens[slot] = token
        self.positions[slot] += 1
        job.left -= 1
        job.served.tokens(output=1)
        job.put(token)
        if not job.left or token == END or job.given_up:
            if not job.given_up:
                job.served.finish_reason("stop" if token == END else "length")
            self.jobs[slot] = None
            job.put(None)


class Question(BaseModel):
    prompt: str
    max_tokens: int = 32


def make_app(engine):
    app = FastAPI()

    @app.post("/generate")
    async def generate(question: Question):
        prompt = list(question.prompt.encode())
        if not 0 < len(prompt) <= PROMPTS[-1] or not 0 < question.max_tokens <= LENGTH - PROMPTS[-1]:
            raise HTTPException(
                422, f"`prompt` has 1 to {PROMPTS[-1]} bytes, `max_tokens` is 1 to {LENGTH - PROMPTS[-1]}."
            )
        job = Job(prompt, question.max_tokens)
        engine.waiting.put(job)

        async def events():
            try:
                while (token := await job.tokens.get()) is not None:
                    yield f"data: {json.dumps({'token': token, 'text': chr(token)})}\n\n"
                yield "data: [DONE]\n\n"
            except (asyncio.CancelledError, GeneratorExit):  # the client has gone
                job.served.finish_reason("abort")
                job.given_up = True
                raise

        return StreamingResponse(events(), media_type="text/event-stream")

    return jaxobs.asgi(app)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--cold", action="store_true", help="compile when the first requests need it")
    options = parser.parse_args()
    jaxobs.start()
    engine = Engine(make_params(), warm=not options.cold)
    uvicorn.run(make_app(engine), host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
