"""A Flax NNX network with dropout and batch norm, built as the tutorials build it."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits


class Model(nnx.Module):
    def __init__(self, rngs):
        self.conv1 = nnx.Conv(1, 16, kernel_size=(3, 3), rngs=rngs)
        self.norm1 = nnx.BatchNorm(16, rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, kernel_size=(3, 3), rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        sizes = [512, 256, 224, 192, 160, 128, 112, 96, 80, 64, 48]
        self.hidden = nnx.List([nnx.Linear(n, m, rngs=rngs) for n, m in zip(sizes, sizes[1:], strict=False)])
        self.out = nnx.Linear(48, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.avg_pool(nnx.relu(self.norm1(self.conv1(x))), (2, 2), strides=(2, 2))
        x = nnx.relu(self.dropout(self.conv2(x)))
        x = x.reshape(x.shape[0], -1)
        for layer in self.hidden:
            x = nnx.relu(layer(x))
        return self.out(x)


def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, gradients)
    return loss


@nnx.jit
def accuracy(model, x, y):
    return jnp.mean(jnp.argmax(model(x), -1) == y)


images, labels = load_digits(return_X_y=True)
images = (images / 16).reshape(-1, 8, 8, 1).astype(np.float32)
model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
random = np.random.default_rng(0)
for epoch in range(6):
    #: step
    model.train()
    for batch in random.permutation(1500).reshape(-1, 30):
        loss = train_step(model, optimizer, images[batch], labels[batch])
    print(f"epoch {epoch + 1}: loss {loss:.4f}", end="")
    #: eval
    model.eval()
    print(f", accuracy {accuracy(model, images[1500:], labels[1500:]):.3f}")
