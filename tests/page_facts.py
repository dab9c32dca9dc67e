"""Facts made by hand for the live page: a large run on eight GPUs, a small one on a CPU, and nothing yet."""

from __future__ import annotations

import math
from dataclasses import replace

from jaxobs.facts import (
    EAGER,
    CacheState,
    Change,
    Compilation,
    DeviceMemory,
    DeviceState,
    FunctionState,
    Histogram,
    ObserverState,
    OpenCompilation,
    ProcessState,
    Snapshot,
)

NOW = 1_769_850_900.0
PID = 48213
GIB = 2**30

_VERSIONS = {
    "jaxobs": "0.1.0",
    "python": "3.11.7",
    "jax": "0.10.2",
    "jaxlib": "0.10.2",
    "jax-cuda13-plugin": "0.10.2",
}
_BOUNDS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)


def function(name: str, **figures: object) -> FunctionState:
    """A function whose phases took `seconds`, split as JAX usually splits them."""
    causes = dict(figures.pop("causes", {"first_call": {"miss": 1}}))  # type: ignore[call-overload]
    seconds = float(figures.pop("seconds", 0.4))  # type: ignore[arg-type]
    count = sum(sum(each.values()) for each in causes.values())
    cache: dict[str, int] = {}
    for by_cache in causes.values():
        for result, number in by_cache.items():
            cache[result] = cache.get(result, 0) + number
    loaded = cache.get("hit", 0) / count if count else 0
    parts = {"trace": 0.14, "lower": 0.07, "compile": 0.79 * (1 - loaded), "cache_load": 0.06 * loaded}
    phases = {phase: seconds * part for phase, part in parts.items() if part}
    made: dict[str, object] = {
        "compilations": causes,
        "phase_seconds": phases,
        "phase_counts": dict.fromkeys(phases, count),
        "cache": cache,
        "last_compiled": NOW - 40,
        "last_reason": "Argument x was float32[128,512], is now float32[96,512]; pad it to one size.",
    }
    return FunctionState(name=name, **(made | figures))  # type: ignore[arg-type]


FUNCTIONS = (
    function(
        "maxtext.train.train_step",
        calls=18_204,
        seconds=231.4,
        causes={"first_call": {"miss": 1}, "sharding": {"miss": 1}},
        errors={"XlaRuntimeError": 2},
        last_reason=(
            "Argument state.params['decoder']['layers']['mlp']['wi']['kernel'] was sharded P('fsdp', "
            "'tensor'), is now P('fsdp', None); give both calls the same out_shardings."
        ),
        dispatch=Histogram(_BOUNDS, (0, 812, 201, 8, 2, 1, 0), 4.21),
    ),
    function(
        "maxtext.train.eval_step",
        calls=412,
        seconds=88.2,
        causes={"first_call": {"miss": 1}, "shape": {"miss": 3, "hit": 1}},
        last_reason=(
            "Argument batch['inputs'] was int32[64,4096], is now int32[37,4096]: the last batch is "
            "shorter; drop it or pad it."
        ),
    ),
    function("maxtext.models.decoder.Decoder.init", seconds=61.0, causes={"first_call": {"hit": 1}}),
    function(
        "flax.nnx.training.optimizer.Optimizer.update",
        seconds=34.9,
        causes={"first_call": {"miss": 1}, "structure": {"miss": 2}},
        last_reason=("Argument grads gained the leaf ['decoder']['router']['bias']: None before, an array now."),
    ),
    function(
        "maxtext.decode.<locals>.generate_step",
        calls=96_233,
        seconds=29.7,
        causes={"first_call": {"miss": 1}, "shape": {"miss": 11, "hit": 6}},
        last_reason=(
            "Argument kv_cache was bfloat16[8,512,128], is now bfloat16[8,640,128]; grow the cache in powers of two."
        ),
    ),
    function(
        "maxtext.checkpointing.restore_shard",
        seconds=12.6,
        causes={"first_call": {"hit": 2}, "placement": {"miss": 2}},
    ),
    function(
        "maxtext.metrics.accumulate",
        calls=18_204,
        seconds=4.4,
        causes={"first_call": {"miss": 1}, "weak_type": {"miss": 1}, "dtype": {"miss": 1}},
        last_reason=(
            "Argument loss was float32[], is now weak float32[]: a Python scalar took its place; wrap it "
            "in jnp.float32."
        ),
    ),
    function(
        "experiments.ablate.sweep.<locals>.<lambda>",
        seconds=18.3,
        causes={"first_call": {"miss": 1}, "new_function": {"miss": 41}},
        last_reason=(
            "The same code came as a new function object, so JAX could not know it again; make it once, "
            "outside the loop."
        ),
    ),
    function("optax._src.linear_algebra.global_norm", seconds=2.1),
    function(
        "jax._src.random._uniform",
        seconds=0.9,
        causes={"first_call": {"miss": 1}, "shape": {"miss": 7}, "static_argument": {"miss": 2}},
    ),
    function("jax._src.random._normal", seconds=0.8, causes={"first_call": {"miss": 1}, "shape": {"miss": 5}}),
    function(
        "jax._src.random._truncated_normal",
        seconds=1.4,
        causes={"first_call": {"miss": 1}, "shape": {"miss": 9}},
    ),
    function("jax._src.numpy.lax_numpy._where", seconds=0.31, causes={"first_call": {"disabled": 1}}),
    function("grain.jax.device_put_batch", seconds=0.22, causes={"first_call": {"miss": 1}, "layout": {"miss": 1}}),
    function("maxtext.schedules.cosine_with_warmup", calls=18_204, seconds=0.09),
    function(
        "maxtext.losses.softmax_cross_entropy_with_z_loss_and_label_smoothing_masked",
        seconds=3.3,
        causes={"first_call": {"miss": 1}, "context": {"miss": 1}},
    ),
    function(
        "maxtext.layers.attention.AttentionOp.apply_ring_attention",
        seconds=21.8,
        causes={"first_call": {"miss": 1}, "jit_options": {"miss": 1}},
    ),
    function(
        "maxtext.layers.moe.RoutedMoE.route",
        seconds=7.5,
        causes={"first_call": {"miss": 1}, "cache_cleared": {"miss": 1}},
    ),
    function("maxtext.profiler.step_annotation", seconds=0.05, causes={"first_call": {"disabled": 1}}),
    function(
        "chex._src.asserts.assert_finite",
        seconds=0.41,
        causes={"first_call": {"miss": 1}, "unknown": {"miss": 2}},
    ),
    function("orbax.checkpoint.serialize", seconds=0.6, causes={"first_call": {"miss": 1}}),
    function("maxtext.utils.gradient_clip", seconds=1.9, causes={"first_call": {"hit": 1}}),
    function("maxtext.data.shift_right", calls=18_204, seconds=0.12),
    function("convert_element_type", seconds=0.2, causes={"first_call": {"disabled": 6}}),
    function(
        EAGER,
        seconds=3.9,
        causes={"first_call": {"disabled": 64}, "shape": {"disabled": 23}, "dtype": {"disabled": 9}},
    ),
)


def memory(device: str, at: float, in_use: int | None, live: int | None, **more: int) -> DeviceMemory:
    """One sample of one device."""
    return DeviceMemory(time=at, device=device, in_use_bytes=in_use, live_array_bytes=live, **more)


def gpu(index: int, share: float) -> DeviceState:
    """A device with an hour of a training run's memory behind it, `share` of 79.6 GiB full."""
    history: list[tuple[float, int | None, int | None]] = []
    limit = int(79.6 * GIB)
    for step in range(360):
        wave = 0.03 * math.sin(step / 9 + index) + (0.05 if step % 60 > 52 else 0)
        grown = min(1.0, step / 30) * (share + wave) * limit
        history.append((NOW - 3600 + 10 * step, int(grown), int(grown * 0.71)))
    last = history[-1]
    sample = memory(
        f"gpu:{index}",
        NOW - 2,
        last[1],
        last[2],
        peak_bytes=max(each[1] or 0 for each in history),
        limit_bytes=limit,
        live_arrays=1_482,
        largest_free_block_bytes=3 * GIB,
    )
    return DeviceState(
        device=f"gpu:{index}",
        id=index,
        platform="gpu",
        device_kind="NVIDIA H100 80GB HBM3",
        process_index=0,
        pci_bus_id=f"0000:{index:02x}:00.0",
        memory=sample,
        history=tuple(history),
    )


def cpu() -> DeviceState:
    """A CPU device, whose allocator tells nothing: live arrays only."""
    history = tuple((NOW - 300 + 5 * step, None, int(2**20 * (9 + 3 * math.sin(step / 5)))) for step in range(60))
    sample = memory("cpu:0", NOW - 1, None, 13_002_752, live_arrays=213)
    return DeviceState(
        device="cpu:0",
        id=0,
        platform="cpu",
        device_kind="cpu",
        process_index=0,
        memory=sample,
        history=history,
    )


def process(**changes: object) -> ProcessState:
    """The process that the rich snapshot tells of."""
    base = ProcessState(
        pid=PID,
        hostname="h100-pool-7f4c",
        program="/srv/runs/maxtext/train.py",
        started=NOW - 7_953,
        process_index=2,
        process_count=8,
        versions=_VERSIONS,
        platform="gpu",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def totals(functions: tuple[FunctionState, ...]) -> dict[str, Histogram]:
    """Seconds by phase over all functions, as the store keeps them."""
    seconds: dict[str, float] = {}
    for each in functions:
        for phase, spent in each.phase_seconds.items():
            seconds[phase] = seconds.get(phase, 0.0) + spent
    return {phase: Histogram((1.0,), (1, 1), spent) for phase, spent in seconds.items()}


def rich() -> Snapshot:
    """A process of a large training run on eight devices."""
    shares = (0.78, 0.77, 0.81, 0.79, 0.76, 0.78, 0.9, 0.77)
    return Snapshot(
        time=NOW,
        process=process(),
        functions=FUNCTIONS,
        phases=totals(FUNCTIONS),
        in_progress=(OpenCompilation("maxtext.train.train_step", "compile", NOW - 94, "MainThread"),),
        devices=tuple(gpu(index, share) for index, share in enumerate(shares)),
        cache=CacheState(
            enabled=True,
            directory="/var/cache/jax",
            unsaved={"too_fast": 31, "callbacks": 2},
            saved_seconds=412.0,
        ),
        observer=ObserverState(
            installed=True, capabilities={"miss_frame": True, "cache_events": True}, collect_seconds=0.004
        ),
        last_sequence=0,
    )


def empty() -> Snapshot:
    """A process that has done nothing yet: no backend, no function, no device."""
    quiet = process(platform=None, program=None, process_index=0, process_count=1)
    return replace(
        rich(),
        process=quiet,
        functions=(),
        phases={},
        in_progress=(),
        devices=(),
        cache=CacheState(enabled=False, directory=None),
    )


def on_cpu() -> Snapshot:
    """A small run on the CPU, with a cache switched off and a few functions."""
    functions = (
        function(
            "digits.train_step",
            calls=1_204,
            seconds=1.31,
            causes={"first_call": {"disabled": 1}, "shape": {"disabled": 1}},
            last_reason=(
                "Argument batch['image'] was float32[128,64], is now float32[5,64]: the last batch is "
                "shorter; drop it or pad it."
            ),
        ),
        function("digits.eval_step", calls=40, seconds=0.62, causes={"first_call": {"disabled": 1}}),
        function("digits.accuracy", seconds=0.08, causes={"first_call": {"disabled": 1}, "dtype": {"disabled": 1}}),
        function(EAGER, seconds=0.4, causes={"first_call": {"disabled": 11}}),
    )
    return replace(
        rich(),
        functions=functions,
        phases=totals(functions),
        in_progress=(),
        devices=(cpu(),),
        process=process(
            platform="cpu",
            program="digits.py",
            hostname="laptop",
            process_index=0,
            process_count=1,
            started=NOW - 312,
        ),
        cache=CacheState(enabled=False, directory=None),
    )


def compilation(sequence: int, function: str = "maxtext.train.train_step", **changes: object) -> Compilation:
    """One event of the feed."""
    base = Compilation(
        time=NOW - 600 + 7 * sequence,
        pid=PID,
        sequence=sequence,
        function=function,
        cause="first_call",
        reason="First call of this function.",
        phases={"trace": 0.21, "lower": 0.08, "compile": 1.61},
        cache="miss",
        call_site="train.py:214",
        fingerprint=f"{sequence * 7919:08x}c0ffee",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def events() -> list[Compilation]:
    """A feed with each kind of compilation that a reader meets."""
    made: list[Compilation] = [
        compilation(
            1,
            "maxtext.models.decoder.Decoder.init",
            cache="hit",
            phases={"trace": 0.9, "lower": 0.3, "cache_load": 0.4},
        ),
        compilation(
            2,
            "maxtext.train.train_step",
            phases={"trace": 14.2, "lower": 3.8, "compile": 97.2},
            transform="linearize",
        ),
    ]
    made += [
        compilation(
            3 + index,
            f"<{primitive}>",
            eager=True,
            cache="disabled",
            phases={"trace": 0.001, "lower": 0.002, "compile": 0.02},
        )
        for index, primitive in enumerate(("broadcast_in_dim", "convert_element_type", "iota", "add"))
    ]
    made += [
        compilation(
            7,
            "optax._src.linear_algebra.global_norm",
            uncached_because="too_fast",
            phases={"trace": 0.02, "lower": 0.01, "compile": 0.14},
            call_site="train.py:301",
        ),
        compilation(
            8,
            "experiments.ablate.sweep.<locals>.<lambda>",
            cause="new_function",
            uncached_because="too_fast",
            call_site="experiments/ablate.py:57",
            phases={"trace": 0.05, "lower": 0.02, "compile": 0.33},
            reason=(
                "The same code came as a new function object, so JAX could not know it again; make it "
                "once, outside the loop."
            ),
        ),
        compilation(
            9,
            "maxtext.metrics.accumulate",
            cause="weak_type",
            call_site="maxtext/metrics.py:88",
            phases={"trace": 0.01, "lower": 0.01, "compile": 0.09},
            reason=(
                "Argument loss was float32[], is now weak float32[]: a Python scalar took its place; wrap "
                "it in jnp.float32."
            ),
            changes=(Change("loss", "weak_type", "float32[]", "float32[] weak"),),
        ),
        compilation(
            10,
            "maxtext.train.eval_step",
            cause="shape",
            phases={"trace": 2.2, "lower": 0.8, "compile": 17.6},
            call_site="train.py:340",
            reason=(
                "Argument batch['inputs'] was int32[64,4096], is now int32[37,4096]: the last batch is "
                "shorter; drop it or pad it. 4 more arguments changed with it."
            ),
            changes=tuple(
                Change(f"batch['{name}']", "shape", "int32[64,4096]", "int32[37,4096]")
                for name in ("inputs", "targets", "segment_ids", "positions", "mask")
            ),
        ),
        compilation(
            11,
            "maxtext.train.train_step",
            cause="sharding",
            phases={"trace": 13.8, "lower": 3.6, "compile": 98.8},
            call_site="train.py:214",
            reason=(
                "Argument state.params['decoder']['layers']['mlp']['wi']['kernel'] was sharded P('fsdp', "
                "'tensor'), is now P('fsdp', None); give both calls the same out_shardings."
            ),
            changes=(
                Change(
                    "state.params['decoder']['layers']['mlp']['wi']['kernel']",
                    "sharding",
                    "P('fsdp', 'tensor')",
                    "P('fsdp', None)",
                ),
            ),
        ),
    ]
    return made
