"""Facts made by hand for the live page: a large run on eight GPUs, a small one on a CPU, and nothing yet."""

from __future__ import annotations

import math
from dataclasses import replace

from jaxobs.facts.cache import CacheLookup, CacheState
from jaxobs.facts.compilations import EAGER, Change, Compilation, OpenCompilation
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.histograms import Histogram
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.facts.process import ObserverState, ProcessState
from jaxobs.facts.snapshot import Snapshot

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
        device=Histogram(_BOUNDS, (0, 0, 0, 28, 2, 0, 0), 1.2),
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
        fastpath_misses={"arguments": 412, "cache_full": 33},
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


def finding(kind: str, function: str, **changes: object) -> Finding:
    """A finding, with what its kind leaves open."""
    base = Finding(
        time=NOW - 40,
        pid=PID,
        id=f"{kind}:{function}",
        finding=kind,
        function=function,
        summary=f"`{function}` does what {kind} says.",
        advice="Do something about it.",
        since=NOW - 3_000,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


FINDINGS = (
    finding(
        "two_shardings_at_start",
        "maxtext.train.train_step",
        summary="`train_step` compiled twice at its start: 2 arrays of `state` moved after the first call.",
        advice="Place `state` before the first call as the step returns it: `jax.device_put(state, sharding)`.",
        count=2,
        seconds=116.2,
        sequences=(2, 11),
        data={
            "leaves": [
                {"path": "state.params['wi']", "before": "P()", "after": "P('fsdp', None)"},
                {"path": "state.params['wo']", "before": "P()", "after": "P(None, 'fsdp')"},
            ],
            "arrays": 2,
        },
    ),
    finding(
        "unbounded_shapes",
        "maxtext.decode.<locals>.generate_step",
        subject="kv_cache dimension 1",
        summary=(
            "Dimension 1 of `kv_cache` has taken 17 sizes from 144 to 4,096; each new one compiles "
            "`maxtext.decode.<locals>.generate_step` again."
        ),
        advice=(
            "Pad it to powers of two (512, 1,024, 2,048, 4,096): of the sizes seen 4 programs would be left instead of "
            "17, and 19% of what they compute would be padding. Mask the padding out."
        ),
        count=17,
        seconds=29.7,
        evidence=(
            "2026-01-31T08:14:20Z train.py:340 `kv_cache` bfloat16[8,512,128] -> bfloat16[8,640,128], 1.9 s",
            "2026-01-31T08:13:07Z train.py:340 `kv_cache` bfloat16[8,448,128] -> bfloat16[8,512,128], 1.8 s",
        ),
        sequences=(3, 10, 4711),
        data={
            "argument": "kv_cache",
            "dimension": 1,
            "sizes": [128 + 16 * step**2 for step in range(1, 16)] + [512, 4096],
            "buckets": [512, 1024, 2048, 4096],
            "rule": "powers of two",
            "padding": 0.187,
            "programs": 4,
            "also": [],
        },
    ),
    finding(
        "recreated_functions",
        "experiments.ablate.sweep.<locals>.<lambda>",
        subject="experiments/ablate.py:57",
        summary="The lambda was made again 41 times at experiments/ablate.py:57, and JAX compiled each of them.",
        advice="Make the lambda and its jit once, before the loop, and call it there.",
        count=41,
        seconds=18.1,
        evidence=("2026-01-31T08:14:41Z experiments/ablate.py:57 new_function, 400 ms",),
        sequences=(8,),
    ),
    finding(
        "recompile_storm",
        EAGER,
        subject="<add>",
        summary="`<add>` goes on compiling after its warm-up: 9 times in 2 minutes.",
        advice="Move the loop at train.py:301 into a jitted function.",
        count=9,
        seconds=0.3,
        sequences=(6,),
        data={"per_minute": 4.5, "causes": {"shape": 1.0}},
    ),
)


def memory(device: str, at: float, in_use: int | None, live: int | None, **more: int) -> DeviceMemory:
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
    for function in functions:
        for phase, spent in function.phase_seconds.items():
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
            saved_seconds=412.34,
            bytes=1_288_490_189,
            entries=212,
            grown_bytes=24_641_536,
        ),
        observer=ObserverState(
            installed=True, capabilities={"miss_frame": True, "cache_events": True}, collect_seconds=0.004
        ),
        last_sequence=0,
        findings=FINDINGS,
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
        findings=(),
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
        findings=(),
    )


def compilation(sequence: int, function: str = "maxtext.train.train_step", **changes: object) -> Compilation:
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


def lookup(compiled: Compilation, **changes: object) -> CacheLookup:
    """The question to the persistent cache that went before a compilation."""
    base = CacheLookup(
        time=compiled.time,
        pid=PID,
        sequence=compiled.sequence,
        function=compiled.function,
        result=compiled.cache,
        key=f"jit_{compiled.function.rpartition('.')[2]}-{compiled.fingerprint}",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def lookups() -> list[Event]:
    """The cache's answers for some of the feed: one hit, and one miss of what was compiled before."""
    compiled = {each.sequence: each for each in events()}
    return [
        lookup(compiled[1], seconds=0.052, saved_seconds=11.84),
        lookup(
            compiled[11],
            differs=("flags", "options"),
            reason=(
                "Process 41007 compiled it an hour ago with other XLA flags: `--xla_gpu_autotune_level=4` then, "
                "`--xla_gpu_autotune_level=2` now."
            ),
        ),
    ]


TOO_FAST = "Compiled in 0.14 s, below `jax_persistent_cache_min_compile_time_secs`, which is 1 s."


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
            uncached_detail=TOO_FAST,
            phases={"trace": 0.02, "lower": 0.01, "compile": 0.14},
            call_site="train.py:301",
        ),
        compilation(
            8,
            "experiments.ablate.sweep.<locals>.<lambda>",
            cause="new_function",
            uncached_because="too_fast",
            uncached_detail=TOO_FAST,
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
            flops=4.1e13,
            memory={"argument": 26 * GIB, "output": 4_096, "temp": 9 * GIB},
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
            call_site="/srv/runs/maxtext/train.py:214",
            flops=1.318e15,
            memory={"argument": 26 * GIB, "output": 25 * GIB, "temp": 31 * GIB, "alias": 25 * GIB, "code": 7_340_032},
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
