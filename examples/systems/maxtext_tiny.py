"""MaxText trains a small model on synthetic data, with checkpoints, by the flags of its command line."""

import os
import runpy
import sys

import maxtext

# `jaxobs run -m maxtext.trainers.pre_train.train FLAGS` does the same.
sys.argv = [
    "train",
    os.path.join(maxtext.__path__[0], "configs", "base.yml"),
    "run_name=tiny",
    f"base_output_directory={os.path.abspath('out')}",
    "dataset_type=synthetic",
    "steps=60",
    "per_device_batch_size=1",
    "base_emb_dim=64",
    "base_num_query_heads=4",
    "base_num_kv_heads=4",
    "base_mlp_dim=128",
    "base_num_decoder_layers=2",
    "head_dim=16",
    "vocab_size=512",
    "max_target_length=64",
    "enable_checkpointing=True",
    "checkpoint_period=20",
    "async_checkpointing=True",
    "hardware=cpu",
    f"jax_cache_dir={os.path.abspath('cache')}",
    "enable_goodput_recording=False",
    "skip_jax_distributed_system=True",
]
runpy.run_module("maxtext.trainers.pre_train.train", run_name="__main__", alter_sys=True)
