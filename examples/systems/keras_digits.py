"""A Keras model on handwritten digits: compile, fit with validation data, evaluate."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images, labels = load_digits(return_X_y=True)
images = (images / 16).reshape(-1, 8, 8, 1).astype(np.float32)

model = keras.Sequential(
    [
        keras.layers.Input((8, 8, 1)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])


class Progress(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        #: step
        pass

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1}: " + ", ".join(f"{name} {value:.3f}" for name, value in sorted(logs.items())))

    def on_test_begin(self, logs=None):
        #: eval
        pass

    def on_test_end(self, logs=None):
        #: step
        pass


model.fit(
    images[:1200],
    labels[:1200],
    validation_data=(images[1200:1500], labels[1200:1500]),
    batch_size=32,
    epochs=40,
    verbose=0,
    callbacks=[Progress()],
)
#: eval
loss, accuracy = model.evaluate(images[1500:], labels[1500:], batch_size=32, verbose=0)
print(f"test: loss {loss:.3f}, accuracy {accuracy:.3f}")
