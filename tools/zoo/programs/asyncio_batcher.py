"""An inference service on asyncio that gathers requests into batches of 1, 8 or 32, with clients that call it."""

import asyncio
import time

import jax
import numpy as np

SIZES = (1, 8, 32)
random = np.random.default_rng(0)
weights = [
    random.normal(size=(256, 1024)) / 16,
    random.normal(size=(1024, 1024)) / 32,
    random.normal(size=(1024, 8)) / 32,
]
weights = jax.device_put([w.astype(np.float32) for w in weights])


@jax.jit
def predict(weights, x):
    for w in weights[:-1]:
        x = jax.nn.gelu(x @ w)
    return jax.nn.softmax(x @ weights[-1])


class Service:
    def __init__(self):
        self.queue = asyncio.Queue()
        self.served = self.batches = 0
        for size in SIZES:
            predict(weights, np.zeros((size, 256), np.float32)).block_until_ready()

    async def ask(self, row):
        answer = asyncio.get_running_loop().create_future()
        await self.queue.put((row, answer))
        return await answer

    async def work(self):
        while True:
            waiting = [await self.queue.get()]
            await asyncio.sleep(0.002)
            while len(waiting) < SIZES[-1] and not self.queue.empty():
                waiting.append(self.queue.get_nowait())
            size = next(s for s in SIZES if s >= len(waiting))
            x = np.zeros((size, 256), np.float32)
            x[: len(waiting)] = [row for row, _ in waiting]
            answers = await asyncio.to_thread(lambda: np.asarray(predict(weights, x)))
            for (_, answer), value in zip(waiting, answers, strict=False):
                answer.set_result(value)
            self.served += len(waiting)
            self.batches += 1


async def client(service, seed, until):
    random = np.random.default_rng(seed)
    while time.monotonic() < until:
        await service.ask(random.normal(size=256).astype(np.float32))
        await asyncio.sleep(random.exponential(0.03))


async def main():
    service = Service()
    worker = asyncio.create_task(service.work())
    until = time.monotonic() + 12
    await asyncio.gather(*(client(service, seed, until) for seed in range(20)))
    worker.cancel()
    return service


service = asyncio.run(main())
print("served more than 100:", service.served > 100)
