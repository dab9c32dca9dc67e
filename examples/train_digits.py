"""Trains a classifier of handwritten digits with Flax NNX and Optax, with one line for jaxobs in it.

pip install '.[cli,demo]'
python examples/train_digits.py --epochs 500
jaxobs top                             # in another terminal; or open http://127.0.0.1:9464/
"""

import argparse

import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

import jaxobs

jaxobs.start()  # the one line


class Classifier(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(64, 128, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        return self.out(self.dropout(nnx.relu(self.hidden(x))))


@nnx.jit
def train_step(model, optimizer, images, labels):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


@nnx.jit
def predict(model, images):
    return model(images).argmax(axis=-1)


def main(epochs: int, batch: int = 128) -> None:
    digits = load_digits()
    images, labels = (digits.images.reshape(-1, 64) / 16).astype(np.float32), digits.target.astype(np.int32)
    train, test = slice(0, 1500), slice(1500, None)

    model = Classifier(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    shuffle = np.random.default_rng(0)

    for epoch in range(epochs):
        model.train()
        order = shuffle.permutation(1500)
        for start in range(0, 1500, batch):  # 1500 is no multiple of 128: look what jaxobs says to that
            chosen = order[start : start + batch]
            loss = train_step(model, optimizer, images[train][chosen], labels[train][chosen])
        if epoch % 10 == 9 or epoch == epochs - 1:
            model.eval()
            accuracy = np.mean(predict(model, images[test]) == labels[test])
            print(f"epoch {epoch + 1}: loss {float(loss):.3f}, accuracy {accuracy:.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=100)
    main(parser.parse_args().epochs)
