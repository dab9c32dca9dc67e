"""Qwix: a trained network quantized to int8, weights and activations, and compared with itself in float32."""

import jax.numpy as jnp
import numpy as np
import optax
import qwix
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        sizes = [32, 256, 256, 256, 10]
        self.layers = nnx.List([nnx.Linear(n, m, rngs=rngs) for n, m in zip(sizes, sizes[1:], strict=False)])

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        return self.layers[-1](x)


def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, gradients)
    return loss


@nnx.jit
def predict(model, x):
    return jnp.argmax(model(x), -1)


random = np.random.default_rng(0)
inputs = random.normal(size=(6400, 32)).astype(np.float32)
labels = np.argmax(inputs @ random.normal(size=(32, 10)), -1)
model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
for rows in np.array_split(np.arange(6400), 100):
    #: step
    loss = train_step(model, optimizer, inputs[rows], labels[rows])
#: other
print(f"loss {loss:.4f}")
rule = qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8, act_qtype=jnp.int8)
quantized = qwix.quantize_model(model, qwix.PtqProvider([rule]), inputs[:64])
#: eval
for name, each in (("float32", model), ("int8", quantized)):
    right = [jnp.mean(predict(each, inputs[rows]) == labels[rows]) for rows in np.array_split(np.arange(6400), 100)]
    print(f"{name}: accuracy {np.mean(right):.3f}")
