from flax import nnx

example(1)


def step(x):
    return x + 1


example(2)
assert step(1) == 2
loader, state = [np.ones(4)] * 3, np.ones(4)


async def app(scope, receive, send): ...


example(3)
[loop] = jaxobs.snapshot().loops
assert (loop.name, loop.steps, loop.items) == ("train", 3, 12), loop


def train(epochs):
    for _ in range(epochs):
        train_step(state, np.ones(5))


example(4)
