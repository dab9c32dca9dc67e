"""`--deep`: one representative program, compiled with an empty cache and run, on the job's own platform."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from jaxobs.base.errors import JaxobsError
from jaxobs.ops.doctor.machine import Finding, Machine, ok
from jaxobs.views.terminal.text import duration

SECONDS = 600.0
MOST_SLOWER = 0.7
"""Seconds that a start from the cache must save at least."""
_MARK = "jaxobs-doctor:"

_PROGRAM = f"""
import json, time
begun = time.perf_counter()
import jax, jax.numpy as jnp
devices = jax.devices()
ready = time.perf_counter()

def attend(x, w):
    q, k, v = jnp.split(x @ w["qkv"], 3, axis=-1)
    scores = jnp.einsum("btd,bsd->bts", q, k) / q.shape[-1] ** 0.5
    return x + jnp.einsum("bts,bsd->btd", jax.nn.softmax(scores), v) @ w["out"]

def loss(weights, x):
    for w in weights:
        x = attend(x, w)
        x = x + jax.nn.gelu(x @ w["up"]) @ w["down"]
    return jnp.mean(x ** 2)

@jax.jit
def doctor_step(weights, x):
    value, gradients = jax.value_and_grad(loss)(weights, x)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients), value

def make(shape):
    return jnp.full(shape, 0.01, jnp.float32)

weights = [{{"qkv": make((64, 192)), "out": make((64, 64)), "up": make((64, 256)), "down": make((256, 64))}}
           for _ in range(4)]
x = make((8, 32, 64))
called = time.perf_counter()
weights, value = doctor_step(weights, x)
value.block_until_ready()
first = time.perf_counter() - called
called = time.perf_counter()
for _ in range(10):
    weights, value = doctor_step(weights, x)
value.block_until_ready()
print("{_MARK}" + json.dumps({{
    "platform": devices[0].platform, "kind": devices[0].device_kind, "devices": len(devices), "start": ready - begun,
    "first": first, "step": (time.perf_counter() - called) / 10, "finite": bool(jnp.isfinite(value)),
}}))
"""


def check(machine: Machine) -> Iterator[Finding]:
    """Runs it twice: with an empty cache, and with what the first run has stored."""
    with tempfile.TemporaryDirectory(prefix="jaxobs-doctor-") as cache:
        try:
            cold, warm = _run(machine, cache), _run(machine, cache)
        except JaxobsError as error:
            yield Finding(
                id="deep", severity="critical", title="A JAX program does not run here", entity="jax",
                evidence=str(error), why="Neither would the job.", fix="Look at the error; then `jaxobs doctor --deep`",
            )  # fmt: skip
            return
    where = f"{cold['devices']} x {cold['kind']} ({cold['platform']})"
    if not cold["finite"]:
        yield Finding(
            id="deep", severity="critical", title="A simple training step computes NaN", entity=where, evidence=where,
            why="The device, its driver or a library computes wrong numbers.", fix="Take the machine out of service",
        )  # fmt: skip
    if cold["platform"] == "cpu" and (machine.nvidia_devices or machine.tpu_devices) and machine.platforms != ["cpu"]:
        yield Finding(
            id="deep", severity="critical", title="The program ran on the CPU, although an accelerator is here",
            entity="jax", evidence=f"{where}; {len(machine.nvidia_devices) + len(machine.tpu_devices)} device files",
            why="The job runs many times slower.", fix="See the other findings; TF_CPP_MIN_LOG_LEVEL=0 says more",
        )  # fmt: skip
    yield ok(
        f"A first call takes {duration(cold['first'])} with an empty cache",
        f"{where}: import and devices {duration(cold['start'])}, first call {duration(cold['first'])}, with the cache "
        f"{duration(warm['first'])}, a step {duration(cold['step'])}", where,
    ).of("deep")  # fmt: skip
    if warm["first"] > MOST_SLOWER * cold["first"] and cold["first"] > 1.0:
        yield Finding(
            id="deep", severity="warning", title="The persistent cache saves little", entity="cache",
            evidence=f"first call {duration(cold['first'])} without and {duration(warm['first'])} with it",
            why="Each start takes nearly as long as the first one.", fix="jaxobs cache verify -- COMMAND",
        )  # fmt: skip


def _run(machine: Machine, cache: str) -> dict[str, Any]:
    """Returns one process.

    Raises:
      JaxobsError: it died, or said nothing in time.
    """
    variables = {
        **machine.environment, "JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1", "JAX_ENABLE_COMPILATION_CACHE": "1", "JAXOBS_DISABLED": "1",
    }  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM], env=variables, cwd=machine.directory, capture_output=True, text=True,
            errors="replace", timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise JaxobsError(f"no answer within {SECONDS:.0f} s") from None
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            answer: dict[str, Any] = json.loads(line.removeprefix(_MARK))
            return answer
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    raise JaxobsError(last[-400:])
