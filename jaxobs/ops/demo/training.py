"""A small classifier of handwritten digits with Flax NNX and Optax: ordinary code, as users write it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxobs.base.errors import MissingExtraError
from jaxobs.instruments.wrapper import instrument

try:
    import optax
    import sklearn.datasets
    from flax import nnx
except ImportError as error:
    package = {"sklearn": "scikit-learn"}.get(str(error.name), str(error.name))
    raise MissingExtraError("jaxobs demo", package, "demo") from None

BATCH = 128
HELD_OUT = 297
"""Digits that are kept for testing; the other 1,500 do not divide by the batch size, as it goes."""

PRODUCT = 1024
"""Rows and columns of the matrices that `measured_flops` multiplies."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Images of 8 by 8 pixels from 0 to 1, and the digits that they show."""

    images: np.ndarray[Any, np.dtype[np.float32]]
    labels: np.ndarray[Any, np.dtype[np.int32]]

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, seed: int, *, keep_rest: bool) -> Iterator[tuple[Any, Any]]:
        """Yields the digits in a new order, in batches; the rest comes as a smaller last one, or not at all."""
        order = np.random.default_rng(seed).permutation(len(self))
        end = len(self) if keep_rest else len(self) // BATCH * BATCH
        for start in range(0, end, BATCH):
            chosen = order[start : min(start + BATCH, end)]
            yield self.images[chosen], self.labels[chosen]


def load() -> tuple[Digits, Digits]:
    """scikit-learn's 1,797 digits, which come with the package: those to train on, and those held out."""
    found = sklearn.datasets.load_digits()
    images = (found.images / 16.0).astype(np.float32)[..., None]
    labels = found.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[HELD_OUT:], order[:HELD_OUT]
    return Digits(images[train], labels[train]), Digits(images[test], labels[test])


class Classifier(nnx.Module):  # type: ignore[misc, unused-ignore]
    """Two convolutions, dropout and two dense layers: 25,000 parameters."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Conv(1, 16, (3, 3), rngs=rngs)
        self.second = nnx.Conv(16, 32, (3, 3), rngs=rngs)
        self.hidden = nnx.Linear(2 * 2 * 32, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)
        self.out = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images: Any) -> Any:
        x = nnx.avg_pool(nnx.relu(self.first(images)), (2, 2), (2, 2))
        x = nnx.avg_pool(nnx.relu(self.second(x)), (2, 2), (2, 2))
        x = nnx.relu(self.hidden(x.reshape(x.shape[0], -1)))
        return self.out(self.dropout(x))


@nnx.jit  # type: ignore[untyped-decorator]
def new_model() -> tuple[Classifier, Any]:
    """Returns an untrained model and its optimizer. Under one jit: by itself each operation would be a program."""
    model = Classifier(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)


@instrument
@nnx.jit  # type: ignore[untyped-decorator]
def train_step(model: Classifier, optimizer: Any, images: Any, labels: Any, rate: Any) -> Any:
    """Makes a step of gradient descent, and returns the loss; `rate` scales the learning rate."""

    def loss_of(model: Classifier) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, jax.tree.map(lambda gradient: gradient * rate, gradients))
    return loss


def measured_flops() -> float:
    """FLOP/s of a product of two square matrices on one device: the peak for MFU if no data sheet has one."""
    product = jax.jit(lambda a: a @ a)
    a = jnp.ones((PRODUCT, PRODUCT))
    product(a).block_until_ready()
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        product(a).block_until_ready()
        taken.append(time.perf_counter() - began)
    return float(2 * PRODUCT**3 / min(taken))


@instrument
@nnx.jit  # type: ignore[untyped-decorator]
def predict(model: Classifier, images: Any) -> Any:
    """Returns the model's scores for each digit."""
    return model(images)


@nnx.jit  # type: ignore[untyped-decorator]
def saliency(model: Classifier, images: Any) -> Any:
    """Returns how much each pixel of the images counts for the highest score of its image."""
    return jnp.abs(nnx.grad(lambda model, images: model(images).max(axis=-1).sum(), argnums=1)(model, images))
