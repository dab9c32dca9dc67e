"""A Penzai MLP learns XOR of noisy bits, with Penzai's own trainer."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from penzai import pz
from penzai.models import simple_mlp
from penzai.toolshed import basic_training

SIZES = [8, 112, 96, 88, 80, 72, 64, 56, 48, 40, 32, 2]
model = simple_mlp.MLP.from_config(init_base_rng=jax.random.key(0), feature_sizes=SIZES)


def loss_fn(model, rng, state, bits, parity):
    logits = model(pz.nx.wrap(bits, "batch", "features"))
    logits = logits.unwrap("batch", "features")
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, parity).mean()
    return loss, None, {"loss": loss, "accuracy": jnp.mean(jnp.argmax(logits, -1) == parity)}


trainer = basic_training.StatefulTrainer.build(
    root_rng=jax.random.key(42), model=model, optimizer_def=optax.adam(2e-3), loss_fn=loss_fn
)
random = np.random.default_rng(0)
#: step
for number in range(1, 601):
    bits = random.integers(0, 2, size=(64, 8))
    noisy = (2 * bits - 1 + 0.1 * random.normal(size=bits.shape)).astype(np.float32)
    out = trainer.step(bits=noisy, parity=bits[:, :2].sum(1) % 2)
    if number % 200 == 0:
        print(f"step {number}: loss {out['loss']:.4f}, accuracy {out['accuracy']:.3f}")
