"""The one module that knows JAX's insides: what it does when a release has moved them, and what it tells of names."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from jaxobs import internals

PROGRAM = """
import json, sys, warnings
import jax, jax.numpy as jnp, numpy as np
import jaxobs
from jaxobs.state import store

jaxobs.install()
f = jaxobs.jit(lambda x: x * 2)
for n in (1, 2, 2):
    f(np.ones(n, np.float32))
jnp.sin(np.ones(3, np.float32))
state = jaxobs.snapshot()
print(json.dumps({
    "jax": jax.__file__,
    "capabilities": dict(state.observer.capabilities),
    "errors": dict(state.observer.internal_errors),
    "compiled": {f.name: f.compiled for f in state.functions},
    "calls": {f.name: f.calls for f in state.functions},
    "causes": [e.cause for e in store.current().events(kind="compilation")[0]],
    "reasons": [e.reason for e in store.current().events(kind="compilation")[0]],
    "in_progress": len(state.in_progress),
    "devices": len(state.devices),
}))
"""


@pytest.fixture(scope="module")
def moved_jax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this JAX in which a future release has moved what we look at."""
    folder = tmp_path_factory.mktemp("future")
    shutil.copytree(Path(jax.__file__).parent, folder / "jax", ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    for pattern, old, new in [
        ("_src/pjit.py", r"\bcache_miss\b", "on_miss"),
        ("_src/pjit.py", r"\bcall_impl_cache_miss\b", "on_impl_miss"),
        ("_src/dispatch.py", r"record_scalar\([^)]*\)", "None"),
        ("_src/interpreters/pxla.py", r"\b_cached_compilation\b", "_compilation_kept"),
        ("_src/core.py", r"^eval_trace = ", "eval_trace = evaluation_trace = "),
    ]:
        file = folder / "jax" / pattern
        text, count = re.subn(old, new, file.read_text(), flags=re.MULTILINE)
        assert count, pattern
        file.write_text(text)
    return folder


def test_an_unknown_future_jax(moved_jax: Path) -> None:
    """Moved frames put capabilities to 0, causes are told by class, counts stay true, nothing fails."""
    here = Path(internals.__file__).parent.parent.parent
    environment = os.environ | {"PYTHONPATH": f"{moved_jax}{os.pathsep}{here}", "JAX_PLATFORMS": "cpu"}
    environment.pop("JAXOBS_RAISE_INTERNAL_ERRORS", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    told = json.loads(done.stdout)
    assert told["jax"].startswith(str(moved_jax))
    assert (told["errors"], told["in_progress"], told["devices"]) == ({}, 0, 8)
    expected = {"miss_frame": False, "phase_starts": False, "listeners": True}
    assert expected.items() <= told["capabilities"].items()
    assert sum(told["compiled"].values()) == 3
    assert [n for n in told["calls"].values() if n is not None] == [3]
    assert told["causes"] == ["first_call", "unknown", "first_call"]
    assert "retraced" in told["reasons"][1]


def test_this_jax_shows_everything() -> None:
    found = internals.probe()
    assert found and all(found.values()), found


@pytest.mark.parametrize(
    ("name", "plain"),
    [("f", "f"), ("jit(f)", "f"), ("pmap(<lambda>)", "<lambda>"), ("jit(jit(f))", "jit(f)"), ("jit", "jit")],
)
def test_one_function_has_one_name(name: str, plain: str) -> None:
    assert internals.plain_name(name) == plain


def test_other_peoples_listeners_stay() -> None:
    from jax import monitoring
    from jax._src import monitoring as private

    seen: list[str] = []

    def theirs(event: str, **kwargs: object) -> None:
        seen.append(event)

    ours = internals.Listeners(lambda e, **k: None, lambda e, d, **k: None, lambda e, v, **k: None)
    monitoring.register_event_listener(theirs)
    try:
        assert internals.register(ours) == 3
        assert internals.register(ours) == 0
        internals.unregister(ours)
        internals.unregister(ours)
        monitoring.record_event("/test")
    finally:
        private._event_listeners.remove(theirs)
    assert seen == ["/test"]


def test_asking_wakes_no_backend() -> None:
    program = (
        "import jax\nfrom jaxobs import internals\n"
        "internals.clients(), internals.default_platform(), internals.process_index_and_count(), internals.probe()\n"
        "internals.persistent_cache(), internals.trace_state()\n"
        "from jax._src import xla_bridge\nassert not xla_bridge.backends_are_initialized()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
