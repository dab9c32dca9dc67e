"""Keras on JAX: `fit`, `evaluate` and `predict`, then an exception that nobody catches."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


def main() -> None:
    """Trains a classifier on random points."""
    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    points = generator.random((200, 8), dtype=np.float32)
    labels = (points.sum(axis=1) > 4).astype(np.int32)
    model = keras.Sequential([keras.layers.Dense(16, "relu"), keras.layers.Dropout(0.1), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    history = model.fit(points, labels, batch_size=64, epochs=2, verbose=0, shuffle=False)
    print("losses", [round(each, 4) for each in history.history["loss"]])
    print("evaluated", [round(each, 4) for each in model.evaluate(points, labels, batch_size=64, verbose=0)])
    print("predicted", model.predict(points[:10], verbose=0).shape)
    raise RuntimeError("the program's own failure")


if __name__ == "__main__":
    main()
