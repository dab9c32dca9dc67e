"""Valid originals: files and answers that a real program leaves, made by running one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = """
import dataclasses, enum, functools, json, os, pathlib, sys, urllib.request

import jax, jax.numpy as jnp, numpy as np
import jaxobs
from jaxobs.findings.fleet.support.digest import Digest, Programs
from jaxobs.state import store


@dataclasses.dataclass(frozen=True)
class Config:
    width: int


class Kind(enum.Enum):
    SMALL = 1


@functools.partial(jax.jit, static_argnames=("config", "kind"))
def step(params, batch, config=None, kind=None):
    return jax.tree.map(lambda w: w * batch["image"].sum() * config.width, params), jnp.nan * batch["image"].sum()


@jax.jit
def resized(x):
    return (x * 2).sum()


@jax.jit
def traced(x, kernel):
    y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = jax.lax.scan(lambda c, _: (jnp.tanh(c @ c.swapaxes(-1, -2)) @ c, None), y, None, length=3)[0]
    return jnp.sort(y.reshape(-1)).sum()


def main():
    folder = pathlib.Path(sys.argv[1])
    handle = jaxobs.serve(port=0)
    params = {"w": jnp.ones((3, 4)), "layers": [jnp.ones(2), (jnp.ones(3), None)]}
    for number, image in enumerate(jaxobs.data([np.ones((n, 4), np.float32) for n in (1, 2, 3, 4, 5, 6, 7)], "input")):
        with jaxobs.step("train", items=4):
            params, loss = step(params, {"image": image[:1]}, config=Config(2 + number % 2), kind=Kind.SMALL)
            resized(image)
            jaxobs.watch(loss=loss)
    with jaxobs.request("/predict"):
        resized(np.ones((9, 9)))
    jnp.ones(3) + 1
    jax.profiler.start_trace(folder / "trace")
    traced(jnp.ones((2, 8, 8, 3)), jnp.ones((3, 3, 3, 4))).block_until_ready()
    jax.profiler.stop_trace()
    for name, path in (("snapshot.json", "snapshot"), ("events.json", "events?since=0")):
        (folder / name).write_bytes(urllib.request.urlopen(f"{handle.url.rstrip('/')}/api/v1/{path}").read())
    programs = Programs()
    programs.add("step", "abc")
    digest = Digest(process=1, tick=3, host="h", pid=4, programs=1, chain=programs.chain(1), loop="train", steps=90,
                    usual=0.5, looks=20, idle=0.1, waiting=0.5, line="a.py:3", address="127.0.0.1:9464")
    (folder / "digest.json").write_text(digest.encode())
    (folder / "listed.json").write_text(programs.listed().encode())
    try:
        resized(jnp.ones((2, 2)), 3)
    except TypeError:
        pass
    raise RuntimeError("at the end")


if __name__ == "__main__":
    main()
"""

SITE_TOML = """\
job = "train-.*"
functions = ["trainer.*"]
runbook_url = "https://wiki.example.org/jaxobs"
scrape_interval = "30s"

[prices]
accelerator_hour = 2.4

[alerts.JaxRecompilationStorm]
for = "10m"
thresholds = {compilations = 20}

[objectives.goodput]
target = 0.9
"""
SITE_YAML = """\
job: train-.*
matchers: {cluster: a}
functions: [ "trainer.*" ]
alerts:
  JaxRecompilationStorm:
    for: 10m
    thresholds: {compilations: 20}
"""


@dataclass
class Originals:
    """The valid texts by name."""

    folder: Path
    files: dict[str, bytes] = field(default_factory=dict)
    entries: list[Path] = field(default_factory=list)
    """Entries of a persistent cache."""


def make(folder: Path) -> Originals:
    """Runs the program under observation and collects what it leaves.

    Raises:
      RuntimeError: it did not end as it should.
    """
    script = folder / "program.py"
    script.write_text(PROGRAM)
    cache = folder / "cache"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAXOBS_")}
    variables = kept | {
        "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(cache), "JAXOBS_RUN_ID": "fuzz",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip
    log = folder / "log" / "events.jsonl"
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), str(script), str(folder)]
    for _ in range(2):  # the second finds the entries of the first, and goes on with its run
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
        if "at the end" not in done.stderr or not (folder / "digest.json").exists():
            raise RuntimeError(f"the program ended with {done.returncode}: {done.stderr[-2000:]}")
    originals = Originals(folder)
    for path in (*folder.glob("*.json"), *log.parent.glob("*.json*")):
        originals.files["run.json" if path.name.startswith("jaxobs-run") else path.name] = path.read_bytes()
    [trace, *_] = sorted(folder.glob("trace/**/*.xplane.pb"))
    originals.files["trace.xplane.pb"] = trace.read_bytes()
    originals.entries = sorted(cache.glob("*-cache"))[:6]
    return originals
