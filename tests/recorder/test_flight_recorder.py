"""The flight recorder: real out-of-memory errors on the CPU backend, once each, untouched."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.run_programs import environment, events, programs, run_file

import jaxobs
from jaxobs.base import guard
from jaxobs.facts.events import as_event
from jaxobs.recorder import flight_recorder, oom_case, oom_report
from jaxobs.state import store

PIB = 2**50
GIB = 2**30


@pytest.fixture
def recorded(fresh: None, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Installed, with the reports in a directory of the test's."""
    jaxobs.install(flight_recorder=str(tmp_path / "reports"), sample_interval=3600)
    flight_recorder.of(store.current()).after_fork()
    yield tmp_path / "reports"
    assert guard.internal_errors() == {}


def reports() -> list[Any]:
    return store.current().events(kind="out_of_memory")[0]


@jax.jit
def _huge(x: jax.Array) -> jax.Array:
    return jnp.zeros((PIB // 4,)) + x


def test_call_of_an_instrumented_function(recorded: pathlib.Path) -> None:
    """A run-time error is reported with function, signature and file, once; the exception is as without jaxobs."""
    big = jaxobs.jit(lambda x, scale: jnp.zeros((PIB // 4,)) * scale + x, name="train.big")
    with pytest.raises(RuntimeError) as plain:
        _huge(jnp.float32(1))
    before = len(reports())
    with pytest.raises(RuntimeError) as seen:
        big(jnp.float32(1), scale=2.0)
    assert (type(seen.value), seen.value.args) == (type(plain.value), plain.value.args)
    assert len(traceback.extract_tb(seen.tb)) == len(traceback.extract_tb(plain.tb))
    assert next(each.name for each in seen.traceback) == "test_call_of_an_instrumented_function"

    event = reports()[before:]
    assert len(event) == 1
    (event,) = event
    line = traceback.extract_tb(seen.tb)[0].lineno
    assert (event.function, event.stage, event.wanted_bytes) == ("train.big", "run", PIB)
    assert event.call_site == f"{__file__}:{line}"
    assert event.signature == "x float32[], scale float32[]{weak_type=True} (a Python float)"
    assert event.causes[0].cause == "absurd_request"
    assert {each.device for each in event.devices} == {f"cpu:{n}" for n in range(8)}
    assert event.versions["jax"] == jax.__version__ and event.host["total"] > 0
    text = pathlib.Path(event.report).read_text(encoding="utf-8")
    assert text == oom_report.text(event)
    assert "train.big while it ran" in text and "1.00 PiB" in text
    json.dumps(as_event(event))

    state = next(each for each in store.current().snapshot().functions if each.name == "train.big")
    assert sum(state.out_of_memory.values()) == 1 and state.errors == {type(seen.value).__name__: 1}
    assert store.current().snapshot().last_out_of_memory == event
    flight_recorder.of(store.current()).saw(seen.value)
    flight_recorder.of(store.current()).uncaught(seen.value)
    assert len(reports()) == before + 1


def test_error_while_compiling(recorded: pathlib.Path) -> None:
    """An error of a lowering is seen without a wrapper: the phase that failed holds the exception."""
    window = np.lib.stride_tricks.sliding_window_view(np.zeros(1 << 24, np.float32), 1 << 23)
    with pytest.warns(UserWarning, match="constants"), pytest.raises(MemoryError, match=r"256\. TiB"):
        jax.jit(lambda x: x + window)(1.0)
    (event,) = reports()
    assert (event.stage, event.wanted_bytes, event.error) == ("compile", 256 * 2**40, "MemoryError")
    assert (
        "test_error_while_compiling" in event.function
        and event.signature == "x float32[]{weak_type=True} (a Python float)"
    )


COMPILES = programs(__file__)["compiles"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_memory_that_ends_within_the_compile_phase(tmp_path: pathlib.Path) -> None:
    """A constant of 256 MiB is too much for what is left: JAX raises from `compile()`, and that call is told."""
    script, log = tmp_path / "table.py", tmp_path / "log" / "events.jsonl"
    script.write_text(COMPILES, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(log)], env=environment(), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.returncode) == ("survived\n", 0), ended.stderr
    (event,) = events(log, "out_of_memory")
    line = COMPILES.splitlines().index("    lowered.compile()") + 1
    assert (event["function"], event["stage"], event["error"]) == ("model", "compile", "MemoryError")
    assert event["call_site"] == f"{script}:{line}" and event["causes"][0]["cause"] == "host_limit"
    assert pathlib.Path(event["report"]).read_text(encoding="utf-8").startswith("Out of memory: model while it was c")


def test_exceptions_raised_from_it_and_others(recorded: pathlib.Path) -> None:
    """The cause of a wrapped exception counts, once; other errors and the program's own texts are left alone."""
    recorder = flight_recorder.of(store.current())

    class UnkindError(ValueError):
        def __str__(self) -> str:
            raise AssertionError("the user's code ran")

    for other in (
        ValueError("bad shape"),
        KeyError("out of memory"),
        UnkindError("x"),
        RuntimeError("RESOURCE_EXHAUSTED: quota"),
    ):
        recorder.saw(other)
    assert reports() == []
    try:
        try:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.00GiB.")
        except RuntimeError as error:
            raise KeyError("step 7") from error
    except KeyError as error:
        recorder.uncaught(error)
        recorder.uncaught(error)
    assert [each.wanted_bytes for each in reports()] == [2 * GIB]
    assert [each.error for each in store.current().events(kind="error")[0]] == ["KeyError"]


def test_many_in_a_row_are_bounded(recorded: pathlib.Path) -> None:
    """A program that tries sizes out has each error counted; only the first few are looked into."""
    recorder = flight_recorder.of(store.current())
    for number in range(6):
        recorder.saw(RuntimeError(f"Out of memory allocating {number + 1} bytes."))
    found = reports()
    assert len(found) == 6 and sum(bool(each.causes) for each in found) == flight_recorder.BURST
    assert len(list(recorded.iterdir())) == flight_recorder.BURST
    assert store.current().snapshot().observer.dropped["out_of_memory_reports"] == 6 - flight_recorder.BURST


def test_live_arrays_and_replication(recorded: pathlib.Path) -> None:
    """The groups of live arrays come with their shares; a replicated one is told from a sharded one."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    spec = jax.sharding.PartitionSpec
    whole = jax.device_put(jnp.ones((256, 1000)), jax.sharding.NamedSharding(mesh, spec()))
    split = jax.device_put(jnp.ones((512, 1000)), jax.sharding.NamedSharding(mesh, spec("data")))
    event = flight_recorder.of(store.current()).saw(RuntimeError("Out of memory allocating 512 bytes."))
    assert event is not None
    told = {each.shape: each for each in oom_case.groups(event)}
    replicated, sharded = told["float32[256,1000]"], told["float32[512,1000]"]
    assert (replicated.bytes, replicated.devices, replicated.replicated) == (whole.nbytes, 8, True)
    assert (sharded.bytes, sharded.devices, sharded.replicated) == (split.nbytes // 8, 8, False)
    assert replicated.share > 3 * sharded.share


PROGRAM = programs(__file__)["program"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_unchanged_script_that_dies_of_it(tmp_path: pathlib.Path) -> None:
    """`jaxobs run` leaves traceback and exit code alone; the report is there at once, before threads are waited for."""
    script, log = tmp_path / "leak.py", tmp_path / "log" / "events.jsonl"
    script.write_text(PROGRAM, encoding="utf-8")
    plain = run_file(script)
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(log), str(script)]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as watched:
        assert watched.stderr is not None
        while not (found := list(log.parent.glob("out-of-memory-*.txt"))) and watched.poll() is None:
            time.sleep(0.05)
        assert watched.poll() is None, "it was written only when the program had ended"
        errors = watched.stderr.read()
    assert (watched.returncode, errors) == (plain.returncode, plain.stderr) and "Out of memory" in errors
    (event,) = events(log, "out_of_memory")
    assert event["function"] == "__main__.step" and event["causes"][0]["cause"] == "leaked_arrays"
    assert event["report"] == str(found[0])
    assert [each["error"] for each in events(log, "error")] == [event["error"]]
    assert [each["event"] for each in events(log)][-1] == "exit"


def test_script_that_installs_and_dies(tmp_path: pathlib.Path) -> None:
    """With `install()` alone the exception that ends the program is reported at exit, before JAX lets go of arrays."""
    script, log = tmp_path / "dies.py", tmp_path / "events.jsonl"
    script.write_text(
        f"import jaxobs\njaxobs.install(event_log={str(log)!r}, flight_recorder='off')\n"
        f"import jax.numpy as jnp\nkept = jnp.ones((1000,))\njnp.ones(({PIB},))\n",
        encoding="utf-8",
    )
    assert run_file(script).returncode == 1
    (event,) = events(log, "out_of_memory")
    assert event["call_site"].endswith("dies.py:5") and event["report"] is None
    assert event["function"] == "<eager>" and event["arrays"][0]["shape"] == [1000]
    assert list(tmp_path.glob("*.txt")) == []
