"""Facts made by hand for the live page: a large run on eight GPUs, a small one on a CPU, and nothing yet."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

from jaxobs.facts.compilations import CAUSES, EAGER, CacheLookup, CacheState, Change, Compilation, OpenCompilation
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState, Histogram
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.facts.process import ObserverState, ProcessState
from jaxobs.facts.snapshot import Snapshot

NOW = 1_769_850_900.0
PID = 48213
GIB = 2**30

_VERSIONS = {"jaxobs": "0.1.0", "python": "3.11.7"} | dict.fromkeys(("jax", "jaxlib", "jax-cuda13-plugin"), "0.10.2")
_BOUNDS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)


def function(name: str, seconds: float = 0.4, **figures: Any) -> FunctionState:
    """A function whose phases took `seconds`, split as JAX usually splits them.

    Args:
      figures: fields; and counts of compilations by cause, of misses or by the cache's answer; a first call by default.
    """
    given = {cause: figures.pop(cause) for cause in [*figures] if cause in CAUSES} or {"first_call": 1}
    causes = {cause: {"miss": each} if isinstance(each, int) else each for cause, each in given.items()}
    cache: Counter[str] = Counter()
    for answers in causes.values():
        cache.update(answers)
    loaded = cache["hit"] / cache.total()
    parts = {"trace": 0.14, "lower": 0.07, "compile": 0.79 * (1 - loaded), "cache_load": 0.06 * loaded}
    phases = {phase: seconds * part for phase, part in parts.items() if part}
    known = {"compilations": causes, "phase_seconds": phases, "phase_counts": dict.fromkeys(phases, cache.total())}
    reason = "Argument x was float32[128,512], is now float32[96,512]; pad it to one size."
    known |= {"cache": dict(cache), "last_compiled": NOW - 40, "last_reason": reason}
    return FunctionState(name=name, **(known | figures))


SHARDED = (
    "Argument state.params['decoder']['layers']['mlp']['wi']['kernel'] was sharded P('fsdp', 'tensor'), is now "
    "P('fsdp', None); give both calls the same out_shardings."
)
LAST_BATCH = (
    "Argument batch['inputs'] was int32[64,4096], is now int32[37,4096]: the last batch is shorter; drop it or pad it."
)
NEW_LAMBDA = (
    "The same code came as a new function object, so JAX could not know it again; make it once, outside the loop."
)
SCALAR = "Argument loss was float32[], is now weak float32[]: a Python scalar took its place; wrap it in jnp.float32."
GROWN = "Argument kv_cache was bfloat16[8,512,128], is now bfloat16[8,640,128]; grow the cache in powers of two."
HIT, DISABLED = {"hit": 1}, {"disabled": 1}

FUNCTIONS = (
    function(
        "maxtext.train.train_step", 231.4, calls=18_204, first_call=1, sharding=1, errors={"XlaRuntimeError": 2},
        last_reason=SHARDED, dispatch=Histogram(_BOUNDS, (0, 812, 201, 8, 2, 1, 0), 4.21),
        device=Histogram(_BOUNDS, (0, 0, 0, 28, 2, 0, 0), 1.2),
    ),
    function(
        "maxtext.train.eval_step", 88.2, calls=412, first_call=1, shape={"miss": 3, "hit": 1}, last_reason=LAST_BATCH
    ),
    function("maxtext.models.decoder.Decoder.init", 61.0, first_call=HIT),
    function(
        "flax.nnx.training.optimizer.Optimizer.update", 34.9, first_call=1, structure=2,
        last_reason="Argument grads gained the leaf ['decoder']['router']['bias']: None before, an array now.",
    ),
    function(
        "maxtext.decode.<locals>.generate_step", 29.7, calls=96_233, first_call=1, shape={"miss": 11, "hit": 6},
        last_reason=GROWN, fastpath_misses={"arguments": 412, "cache_full": 33},
    ),
    function("maxtext.checkpointing.restore_shard", 12.6, first_call={"hit": 2}, placement=2),
    function("maxtext.metrics.accumulate", 4.4, calls=18_204, first_call=1, weak_type=1, dtype=1, last_reason=SCALAR),
    function(
        "experiments.ablate.sweep.<locals>.<lambda>", 18.3, first_call=1, new_function=41, last_reason=NEW_LAMBDA
    ),
    function("optax._src.linear_algebra.global_norm", 2.1),
    function("jax._src.random._uniform", 0.9, first_call=1, shape=7, static_argument=2),
    function("jax._src.random._normal", 0.8, first_call=1, shape=5),
    function("jax._src.random._truncated_normal", 1.4, first_call=1, shape=9),
    function("jax._src.numpy.lax_numpy._where", 0.31, first_call=DISABLED),
    function("grain.jax.device_put_batch", 0.22, first_call=1, layout=1),
    function("maxtext.schedules.cosine_with_warmup", 0.09, calls=18_204),
    function(
        "maxtext.losses.softmax_cross_entropy_with_z_loss_and_label_smoothing_masked", 3.3, first_call=1, context=1
    ),
    function("maxtext.layers.attention.AttentionOp.apply_ring_attention", 21.8, first_call=1, jit_options=1),
    function("maxtext.layers.moe.RoutedMoE.route", 7.5, first_call=1, cache_cleared=1),
    function("maxtext.profiler.step_annotation", 0.05, first_call=DISABLED),
    function("chex._src.asserts.assert_finite", 0.41, first_call=1, unknown=2),
    function("orbax.checkpoint.serialize", 0.6),
    function("maxtext.utils.gradient_clip", 1.9, first_call=HIT),
    function("maxtext.data.shift_right", 0.12, calls=18_204),
    function("convert_element_type", 0.2, first_call={"disabled": 6}),
    function(EAGER, 3.9, first_call={"disabled": 64}, shape={"disabled": 23}, dtype={"disabled": 9}),
)  # fmt: skip


def finding(kind: str, function: str, **changes: Any) -> Finding:
    """A finding, with what its kind leaves open."""
    known = {"time": NOW - 40, "pid": PID, "id": f"{kind}:{function}", "since": NOW - 3_000}
    known |= {"summary": f"`{function}` does what {kind} says.", "advice": "Do something about it."}
    return Finding(finding=kind, function=function, **(known | changes))


FINDINGS = (
    finding(
        "two_shardings_at_start", "maxtext.train.train_step", count=2, seconds=116.2, sequences=(2, 11),
        summary="`train_step` compiled twice at its start: 2 arrays of `state` moved after the first call.",
        advice="Place `state` before the first call as the step returns it: `jax.device_put(state, sharding)`.",
        data={
            "leaves": [
                {"path": "state.params['wi']", "before": "P()", "after": "P('fsdp', None)"},
                {"path": "state.params['wo']", "before": "P()", "after": "P(None, 'fsdp')"},
            ],
            "arrays": 2,
        },
    ),
    finding(
        "unbounded_shapes", "maxtext.decode.<locals>.generate_step", subject="kv_cache dimension 1", count=17,
        seconds=29.7, sequences=(3, 10, 4711),
        summary="Dimension 1 of `kv_cache` has taken 17 sizes from 144 to 4,096; each new one compiles "
        "`maxtext.decode.<locals>.generate_step` again.",
        advice="Pad it to powers of two (512, 1,024, 2,048, 4,096): of the sizes seen 4 programs would be left instead "
        "of 17, and 19% of what they compute would be padding. Mask the padding out.",
        evidence=(
            "2026-01-31T08:14:20Z train.py:340 `kv_cache` bfloat16[8,512,128] -> bfloat16[8,640,128], 1.9 s",
            "2026-01-31T08:13:07Z train.py:340 `kv_cache` bfloat16[8,448,128] -> bfloat16[8,512,128], 1.8 s",
        ),
        data={
            "argument": "kv_cache", "dimension": 1, "buckets": [512, 1024, 2048, 4096], "rule": "powers of two",
            "sizes": [128 + 16 * step**2 for step in range(1, 16)] + [512, 4096],
            "padding": 0.187, "programs": 4, "also": [],
        },
    ),
    finding(
        "recreated_functions", "experiments.ablate.sweep.<locals>.<lambda>", subject="experiments/ablate.py:57",
        count=41, seconds=18.1, sequences=(8,),
        summary="The lambda was made again 41 times at experiments/ablate.py:57, and JAX compiled each of them.",
        advice="Make the lambda and its jit once, before the loop, and call it there.",
        evidence=("2026-01-31T08:14:41Z experiments/ablate.py:57 new_function, 400 ms",),
    ),
    finding(
        "recompile_storm", EAGER, subject="<add>", count=9, seconds=0.3, sequences=(6,),
        summary="`<add>` goes on compiling after its warm-up: 9 times in 2 minutes.",
        advice="Move the loop at train.py:301 into a jitted function.",
        data={"per_minute": 4.5, "causes": {"shape": 1.0}},
    ),
)  # fmt: skip


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
    _, in_use, live = history[-1]
    sample = memory(
        f"gpu:{index}", NOW - 2, in_use, live, peak_bytes=max(each[1] or 0 for each in history), limit_bytes=limit,
        live_arrays=1_482, largest_free_block_bytes=3 * GIB,
    )  # fmt: skip
    return DeviceState(
        device=f"gpu:{index}", id=index, platform="gpu", device_kind="NVIDIA H100 80GB HBM3", process_index=0,
        pci_bus_id=f"0000:{index:02x}:00.0", memory=sample, history=tuple(history),
    )  # fmt: skip


def cpu() -> DeviceState:
    """A CPU device, whose allocator tells nothing: live arrays only."""
    history = tuple((NOW - 300 + 5 * step, None, int(2**20 * (9 + 3 * math.sin(step / 5)))) for step in range(60))
    sample = memory("cpu:0", NOW - 1, None, 13_002_752, live_arrays=213)
    return DeviceState(
        device="cpu:0", id=0, platform="cpu", device_kind="cpu", process_index=0, memory=sample, history=history
    )


def process(**changes: Any) -> ProcessState:
    """The process that the rich snapshot tells of."""
    base = ProcessState(
        pid=PID, hostname="h100-pool-7f4c", program="/srv/runs/maxtext/train.py", started=NOW - 7_953,
        process_index=2, process_count=8, versions=_VERSIONS, platform="gpu",
    )  # fmt: skip
    return replace(base, **changes)


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
    cache = CacheState(
        enabled=True, directory="/var/cache/jax", unsaved={"too_fast": 31, "callbacks": 2}, saved_seconds=412.34,
        bytes=1_288_490_189, entries=212, grown_bytes=24_641_536,
    )  # fmt: skip
    return Snapshot(
        time=NOW, process=process(), functions=FUNCTIONS, phases=totals(FUNCTIONS), cache=cache, findings=FINDINGS,
        in_progress=(OpenCompilation("maxtext.train.train_step", "compile", NOW - 94, "MainThread"),),
        devices=tuple(gpu(index, share) for index, share in enumerate(shares)), last_sequence=0,
        observer=ObserverState(
            installed=True, capabilities={"miss_frame": True, "cache_events": True}, collect_seconds=0.004
        ),
    )  # fmt: skip


def empty() -> Snapshot:
    """A process that has done nothing yet: no backend, no function, no device."""
    quiet = process(platform=None, program=None, process_index=0, process_count=1)
    return replace(
        rich(), process=quiet, functions=(), phases={}, in_progress=(), devices=(), findings=(),
        cache=CacheState(enabled=False, directory=None),
    )  # fmt: skip


def on_cpu() -> Snapshot:
    """A small run on the CPU, with a cache switched off and a few functions."""
    functions = (
        function(
            "digits.train_step", 1.31, calls=1_204, first_call=DISABLED, shape=DISABLED,
            last_reason="Argument batch['image'] was float32[128,64], is now float32[5,64]: the last batch is "
            "shorter; drop it or pad it.",
        ),
        function("digits.eval_step", 0.62, calls=40, first_call=DISABLED),
        function("digits.accuracy", 0.08, first_call=DISABLED, dtype=DISABLED),
        function(EAGER, 0.4, first_call={"disabled": 11}),
    )  # fmt: skip
    here = {"platform": "cpu", "program": "digits.py", "hostname": "laptop", "process_index": 0, "process_count": 1}
    return replace(
        empty(), functions=functions, phases=totals(functions), devices=(cpu(),),
        process=process(started=NOW - 312, **here),
    )  # fmt: skip


def compilation(sequence: int, function: str = "maxtext.train.train_step", **changes: Any) -> Compilation:
    known = {
        "time": NOW - 600 + 7 * sequence, "cause": "first_call", "reason": "First call of this function.",
        "phases": {"trace": 0.21, "lower": 0.08, "compile": 1.61}, "cache": "miss", "call_site": "train.py:214",
        "fingerprint": f"{sequence * 7919:08x}c0ffee",
    }  # fmt: skip
    return Compilation(pid=PID, sequence=sequence, function=function, **(known | changes))


def lookup(compiled: Compilation, **changes: Any) -> CacheLookup:
    """The question to the persistent cache that went before a compilation."""
    key = f"jit_{compiled.function.rpartition('.')[2]}-{compiled.fingerprint}"
    known = {"time": compiled.time, "sequence": compiled.sequence, "result": compiled.cache, "key": key}
    return CacheLookup(pid=PID, function=compiled.function, **(known | changes))


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


def phases(trace: float, lower: float, compile: float) -> dict[str, float]:
    return {"trace": trace, "lower": lower, "compile": compile}


def events() -> list[Compilation]:
    """A feed with each kind of compilation that a reader meets."""
    fast = {"uncached_because": "too_fast", "uncached_detail": TOO_FAST}
    batch = ("inputs", "targets", "segment_ids", "positions", "mask")
    eager = ("broadcast_in_dim", "convert_element_type", "iota", "add")
    kernel = "state.params['decoder']['layers']['mlp']['wi']['kernel']"
    return [
        compilation(
            1, "maxtext.models.decoder.Decoder.init", cache="hit",
            phases={"trace": 0.9, "lower": 0.3, "cache_load": 0.4},
        ),
        compilation(2, phases=phases(14.2, 3.8, 97.2), transform="linearize"),
        *(
            compilation(3 + index, f"<{name}>", eager=True, cache="disabled", phases=phases(0.001, 0.002, 0.02))
            for index, name in enumerate(eager)
        ),
        compilation(
            7, "optax._src.linear_algebra.global_norm", call_site="train.py:301", phases=phases(0.02, 0.01, 0.14),
            **fast,
        ),
        compilation(
            8, "experiments.ablate.sweep.<locals>.<lambda>", cause="new_function", reason=NEW_LAMBDA,
            call_site="experiments/ablate.py:57", phases=phases(0.05, 0.02, 0.33), **fast,
        ),
        compilation(
            9, "maxtext.metrics.accumulate", cause="weak_type", call_site="maxtext/metrics.py:88", reason=SCALAR,
            phases=phases(0.01, 0.01, 0.09), changes=(Change("loss", "weak_type", "float32[]", "float32[] weak"),),
        ),
        compilation(
            10, "maxtext.train.eval_step", cause="shape", phases=phases(2.2, 0.8, 17.6), flops=4.1e13,
            memory={"argument": 26 * GIB, "output": 4_096, "temp": 9 * GIB}, call_site="train.py:340",
            reason=f"{LAST_BATCH} 4 more arguments changed with it.",
            changes=tuple(Change(f"batch['{name}']", "shape", "int32[64,4096]", "int32[37,4096]") for name in batch),
        ),
        compilation(
            11, cause="sharding", phases=phases(13.8, 3.6, 98.8), call_site="/srv/runs/maxtext/train.py:214",
            flops=1.318e15, reason=SHARDED,
            changes=(Change(kernel, "sharding", "P('fsdp', 'tensor')", "P('fsdp', None)"),),
            memory={"argument": 26 * GIB, "output": 25 * GIB, "temp": 31 * GIB, "alias": 25 * GIB, "code": 7_340_032},
        ),
    ]  # fmt: skip
