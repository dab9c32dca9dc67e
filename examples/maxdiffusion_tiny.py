"""Writes a Stable Diffusion model with random weights, and random latents, into `tiny/`: MaxDiffusion trains on it."""

import json
import os

import datasets
import flax
import jax
import numpy as np
from maxdiffusion import FlaxAutoencoderKL, FlaxDDPMScheduler, FlaxStableDiffusionPipeline, FlaxUNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTokenizer, FlaxCLIPTextModel

os.makedirs("tiny/words", exist_ok=True)
with open("tiny/words/vocab.json", "w") as file:
    json.dump({"<|startoftext|>": 0, "<|endoftext|>": 1, "a</w>": 2}, file)
with open("tiny/words/merges.txt", "w") as file:
    file.write("#version: 0.2\n")
tokenizer = CLIPTokenizer("tiny/words/vocab.json", "tiny/words/merges.txt", model_max_length=16)
text = FlaxCLIPTextModel(
    CLIPTextConfig(
        vocab_size=3,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16,
    )
)
blocks = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
vae = FlaxAutoencoderKL(block_out_channels=(32,) * 4, latent_channels=4, **blocks)
mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1, 1, 1), ("data", "fsdp", "context", "tensor"))
unet = FlaxUNet2DConditionModel(
    sample_size=8,
    block_out_channels=(32, 64),
    layers_per_block=1,
    attention_head_dim=8,
    cross_attention_dim=32,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    mesh=mesh,
)
scheduler, key = FlaxDDPMScheduler(), jax.random.key(0)
with mesh:
    params = {"unet": unet.init_weights(key), "vae": vae.init_weights(key)}
params |= {"text_encoder": text.params, "scheduler": scheduler.create_state()}
pipeline = FlaxStableDiffusionPipeline(vae=vae, text_encoder=text, tokenizer=tokenizer, unet=unet, scheduler=scheduler)
pipeline.save_pretrained("tiny/model", params=flax.linen.meta.unbox(params))
random = np.random.default_rng(0)
datasets.Dataset.from_dict(
    {
        "pixel_values": random.normal(size=(64, 4, 8, 8)).astype("float32"),
        "input_ids": random.normal(size=(64, 16, 32)).astype("float32"),
    }
).save_to_disk("tiny/latents")
