"""Importing jaxobs costs little and does nothing; installing, serving and being scraped wake no backend."""

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

MODULES = ["jaxobs", "jaxobs.base", "jaxobs.base.errors", "jaxobs.base.version"]
MOST_CALLS = 10
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("JAXOBS_")}


def outcome(code: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("first", ["", "import jax"])
def test_import_starts_and_imports_nothing(first: str) -> None:
    """Only the standard library, without JAX and beside it; no thread, and no backend wakes."""
    found = outcome(f"""
        import json, sys, sysconfig, threading
        SYSCONFIG = sysconfig._get_sysconfigdata_name()
        {first}
        before, threads = set(sys.modules), threading.active_count()
        import jaxobs
        tops = {{name.partition(".")[0] for name in set(sys.modules) - before}}
        foreign = sorted(tops - set(sys.stdlib_module_names) - {{"jaxobs", SYSCONFIG}})
        awake = "jax" in sys.modules and jax._src.xla_bridge.backends_are_initialized()
        print(json.dumps([foreign, threading.active_count() - threads, awake]))
    """)
    assert found == [[], 0, False]


def test_import_loads_little() -> None:
    """Few modules of ours, none that JAX has not loaded, and few calls; `make bench` measures the seconds."""
    found = outcome("""
        import json, sys
        import jax
        before, calls = set(sys.modules), 0
        def note(frame, event, argument):
            global calls
            calls += event == "call" and frame.f_globals.get("__name__", "").partition(".")[0] == "jaxobs"
        sys.setprofile(note)
        import jaxobs
        sys.setprofile(None)
        print(json.dumps({"modules": sorted(set(sys.modules) - before), "calls": calls}))
    """)
    assert found["modules"] == MODULES
    assert found["calls"] <= MOST_CALLS


@pytest.mark.parametrize("jax_first", [True, False], ids=["jax imported first", "jaxobs imported first"])
def test_observing_wakes_no_backend(jax_first: bool) -> None:
    """`start`, jitting, a sample, a snapshot and scrapes in every format leave JAX's backends asleep."""
    found = outcome(f"""
        import json, sys, urllib.request
        if {jax_first}:
            import jax
        import jaxobs
        handle = jaxobs.start(port=0, sample_interval=0.05)
        import jax
        jitted = jaxobs.jit(lambda x: x + 1)
        jaxobs.instrument(print)
        jaxobs.snapshot()
        texts = []
        for path, accept in (("metrics", "text/plain"), ("metrics", "application/openmetrics-text"), ("", "*/*"),
                             ("api/v1/snapshot", "*/*"), ("api/v1/events", "*/*"), ("healthz", "*/*")):
            request = urllib.request.Request(handle.url + path, headers={{"Accept": accept}})
            texts.append(urllib.request.urlopen(request, timeout=120).read().decode())
        import time
        time.sleep(0.3)
        asleep = not jax._src.xla_bridge.backends_are_initialized()
        jitted(1)
        print(json.dumps({{
            "asleep": asleep,
            "awake": jax._src.xla_bridge.backends_are_initialized(),
            "devices": "jax_device_info" in texts[0] and "jax_device_info{{" in texts[0],
            "internal_errors": jaxobs.snapshot().observer.internal_errors,
            "compiled": sum(each.compiled for each in jaxobs.snapshot().functions),
        }}))
    """)
    assert found == {"asleep": True, "awake": True, "devices": False, "internal_errors": {}, "compiled": 1}


def test_disabled_does_nothing() -> None:
    found = outcome("""
        import json, os, threading
        os.environ["JAXOBS_DISABLED"] = "1"
        import jax
        import jaxobs
        jaxobs.install()
        handle = jaxobs.start(port=0)
        jitted = jaxobs.jit(lambda x: x + 1)
        jitted(1)
        from jax._src import monitoring
        ours = [each for each in monitoring._event_duration_secs_listeners if each.__module__.startswith("jaxobs")]
        print(json.dumps({
            "same type": type(jitted) is type(jax.jit(lambda x: x)),
            "handle": handle,
            "listeners": len(ours),
            "threads": [each.name for each in threading.enumerate() if "jaxobs" in each.name],
            "functions": len(jaxobs.snapshot().functions),
        }))
    """)
    assert found == {"same type": True, "handle": None, "listeners": 0, "threads": [], "functions": 0}
