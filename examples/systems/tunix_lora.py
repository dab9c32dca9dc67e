"""Tunix: a small language model, fine-tuned by LoRA, which Qwix puts into an NNX model, as Tunix's examples do."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import qwix
from flax import nnx
from tunix.sft.peft_trainer import PeftTrainer, TrainingConfig, TrainingInput

TOKENS, LENGTH, WIDTH, HEADS = 128, 32, 64, 4


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.queries_keys_values = nnx.Linear(WIDTH, 3 * WIDTH, use_bias=False, rngs=rngs)
        self.mixed = nnx.Linear(WIDTH, WIDTH, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x):
        heads = self.queries_keys_values(self.norm(x)).reshape(*x.shape[:2], 3, HEADS, -1)
        queries, keys, values = jnp.moveaxis(heads, 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", queries, keys) / np.sqrt(WIDTH / HEADS)
        scores = jnp.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
        seen = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), values)
        x = x + self.mixed(seen.reshape(x.shape))
        return x + self.down(nnx.gelu(self.up(x)))


class Model(nnx.Module):
    def __init__(self, rngs):
        self.embedding = nnx.Embed(TOKENS, WIDTH, rngs=rngs)
        self.layers = nnx.List([Block(rngs) for _ in range(2)])
        self.out = nnx.Linear(WIDTH, TOKENS, rngs=rngs)

    def __call__(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def loss_fn(model, input_tokens, input_mask):
    losses = optax.softmax_cross_entropy_with_integer_labels(model(input_tokens)[:, :-1], input_tokens[:, 1:])
    return jnp.sum(losses * input_mask[:, 1:]) / jnp.sum(input_mask[:, 1:])


def batches(number, seed):
    random = np.random.default_rng(seed)
    for _ in range(number):
        tokens = np.cumsum(random.integers(0, 3, (16, LENGTH)), axis=1) % TOKENS
        yield TrainingInput(input_tokens=tokens, input_mask=np.ones((16, LENGTH), np.float32))


model = Model(nnx.Rngs(0))
adapted = qwix.apply_lora_to_model(
    model,
    qwix.LoraProvider(module_path="layers/.*", rank=4, alpha=8.0),
    np.zeros((1, LENGTH), np.int32),
    rngs=nnx.Rngs(1),
)
trainer = PeftTrainer(adapted, optax.adamw(1e-2), TrainingConfig(eval_every_n_steps=30)).with_loss_fn(loss_fn)
trainer = trainer.with_gen_model_input_fn(lambda x: {"input_tokens": x.input_tokens, "input_mask": x.input_mask})
held_out = next(batches(1, 2))
before = float(loss_fn(adapted, held_out.input_tokens, held_out.input_mask))
with jax.make_mesh((1,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,)):
    #: step
    trainer.train(batches(90, 0), [*batches(4, 1)])
#: other
after = float(loss_fn(adapted, held_out.input_tokens, held_out.input_mask))
print(f"{trainer.train_steps} steps: loss {before:.3f} -> {after:.3f}")
