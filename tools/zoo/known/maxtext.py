"""MaxText: a small model on its synthetic data."""

from tools.environments import ZOO_MAXTEXT
from tools.zoo.entry import Entry, Loop, Sources

ENTRY = Entry(
    projects=("maxtext", "flax", "optax"),
    says=(
        "MaxText compiles `train_step` ahead, to print what memory it needs, within `with mesh`; its loop calls it "
        "without, so it recompiles. It marks its steps for JAX's profiler, by the name `train`."
    ),
    causes={"train_step": {"first_call": 1, "context": 1}},
    loop=Loop("train", 30),
    row=ZOO_MAXTEXT,
    variables={"DECOUPLE_GCLOUD": "TRUE"},
    sources=Sources(
        folder="src",
        module="maxtext.trainers.pre_train.train",
        arguments=(
            "{sources}/src/maxtext/configs/base.yml",
            "run_name=zoo",
            "base_output_directory=out",
            "dataset_type=synthetic",
            "steps=30",
            "per_device_batch_size=1",
            "base_emb_dim=64",
            "base_num_query_heads=4",
            "base_num_kv_heads=4",
            "base_mlp_dim=128",
            "base_num_decoder_layers=2",
            "head_dim=16",
            "vocab_size=512",
            "max_target_length=64",
            "enable_checkpointing=False",
            "hardware=cpu",
            "enable_goodput_recording=False",
            "skip_jax_distributed_system=True",
        ),
    ),
)
