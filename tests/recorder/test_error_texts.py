"""Errors known by their text: the kind, what it means and what to do; counted by function, and told as events."""

# ruff: noqa: E501 (texts as they are written by others)
from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxobs
from jaxobs.facts.errors import Error
from jaxobs.recorder import error_texts, flight_recorder, user_errors
from jaxobs.recorder.error_texts import KINDS, recognise
from jaxobs.state import store

pytestmark = pytest.mark.usefixtures("fresh")

RUNTIME = ("JaxRuntimeError", "RuntimeError")

TEXTS = [
    ("nccl", "INTERNAL: NCCL operation ncclCommInitRank(&comm, nranks, id, rank) failed: unhandled system error (run with "
     "NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be unrelated) ''."),
    ("nccl", "NCCL operation ncclGroupEnd() failed: internal error - please report this issue to the NCCL developers"),
    ("nccl_missing", "UNIMPLEMENTED: Unable to load NCCL library. Multi-GPU collectives will not work."),
    ("distributed_start", "DEADLINE_EXCEEDED: Barrier timed out. Id: [Init]Wait_for_all_tasks_to_register::0."),
    ("distributed_start", "Stopping coordination service as cluster registration failed."),
    ("distributed_start", "DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed out task names: "
     "/job:jax_worker/replica:0/task:1"),
    ("distributed_order", "jax.distributed.initialize() must be called before any JAX calls that might initialise the XLA "
     "backend."),
    ("peer_lost", "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n"
     "/job:jax_worker/replica:0/task:1"),
    ("peer_lost", "Terminating process because the JAX distributed service detected fatal errors. This most likely "
     "indicates that another task died; see the other task logs for more details."),
    ("peer_lost", "FAILED_PRECONDITION: Task with incarnation id 3446767950926952685 is not connected"),
    ("preemption", "Preemption sync barrier failed: DEADLINE_EXCEEDED"),
    ("hang", "initialize clique for rank 6; This thread has been waiting for 10 seconds and may be stuck. Expected 8 "
     "threads to join the rendezvous, but not all of them arrived on time."),
    ("hang", "Megascale detects a hang but cannot determine the root cause. Please inspect the full digest below."),
    ("programs_differ", "Megascale detects a hang that is likely caused by inconsistent TPU programs"),
    ("programs_differ", "scheckne: An unexpected leader shows up in the launch group with a different launch id than the "
     "current group leader."),
    ("device_halted", "INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device check-failure. Node 0 "
     "halted unexpectedly at tag:pc TensorCoreSequencer:1:0x1d9"),
    ("device_fault", "INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"),
    ("device_fault", "INTERNAL: the CUDA graph: STREAM_CAPTURE_INVALIDATED"),
    ("library_version", "FAILED_PRECONDITION: DNN library initialization failed. Look at the errors above."),
    ("library_version", "Mismatched PJRT plugin PJRT API version (0.54) and framework PJRT API version 0.51)."),
    ("library_version", "jaxlib version 0.11.0 is newer than and incompatible with jax version 0.10.2."),
    ("backend_start", "Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process with pid 176028."),
    ("remote_array", "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not "
     "possible."),
    ("deleted_array", "INVALID_ARGUMENT: Invalid buffer passed: buffer has been deleted or donated."),
    ("program_mismatch", "INVALID_ARGUMENT: Executable(jit_x) expected parameter 2482 of size 5242880 (bf16[4]{0}) but got "
     "buffer with incompatible size 1638400"),
    ("cache_inconsistent", "Persistent compilation cache inconsistency for key K. Executable found in the disk cache does "
     "not match the freshly compiled executable."),
    ("transfer_disallowed", "INVALID_ARGUMENT: Disallowed host-to-device transfer: aval=ShapedArray(float32[4])"),
    ("retraced", "re-tracing function f at a.py:3 for `jit`, but 'no_tracing' is set"),
    ("unhashable_static", "Non-hashable static arguments are not supported. An error occurred while trying to hash an "
     "object of type <class 'list'>"),
]  # fmt: skip
"""Texts of the field, as told in JAX's and XLA's source, documentation and issues."""


@pytest.mark.parametrize(("kind", "text"), TEXTS)
def test_texts_of_the_field_are_known_whatever_their_type(kind: str, text: str) -> None:
    """NCCL, the distributed runtime, chips and libraries: by the text alone."""
    for types in (RUNTIME, ("ValueError",), ("XlaRuntimeError",)):
        found = recognise(types, f"{text}\nmore of it")
        assert found is not None
        assert found.kind == kind


def test_ordinary_errors_are_not_known() -> None:
    """An error that a user's program raises for reasons of its own is left alone."""
    for types, text in [
        (("ValueError",), "bad learning rate: -1"),
        (("KeyError",), "'image'"),
        (("AssertionError",), "loss went up"),
        (("FloatingPointError",), "underflow encountered in multiply"),
        (("RuntimeError",), "DataLoader worker (pid 12) exited unexpectedly"),
        (("FileNotFoundError",), "No such file or directory: 'data/train.npz'"),
        (("TimeoutError",), "download timed out"),
        (("ValueError",), "invalid value (nan) encountered in my own check"),
    ]:
        assert recognise(types, text) is None


def test_the_table_is_whole() -> None:
    """Each kind has one name, signs that compile, a meaning and an advice, as sentences."""
    assert len({each.kind for each in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert re.fullmatch(r"[a-z_]+", kind.kind)
        assert kind.signs or kind.kind == "out_of_memory"
        assert kind.meaning.endswith(".")
        assert kind.advice.endswith(".")
    seen = {kind for kind, _ in TEXTS}
    raised_below = {"nonfinite", "key_reuse", "tracer", "shapes_disagree", "out_of_memory", "inputs_differ"}
    assert seen | raised_below == set(error_texts.BY_NAME)


def errors() -> list[Error]:
    """The events so far."""
    return [each for each in store.current().events(kind="error")[0] if isinstance(each, Error)]


def test_real_errors_of_jax_are_known_and_counted_by_function() -> None:
    """Key reuse, tracers, shapes, donated arrays: type and kind in the snapshot, kind and advice as an event."""

    @jaxobs.jit
    def draws_twice(key: Any) -> Any:
        return jax.random.normal(key) + jax.random.uniform(key)

    @jaxobs.jit
    def branches(x: Any) -> Any:
        return x if x > 0 else -x

    @jaxobs.jit
    def adds(x: Any, y: Any) -> Any:
        return x + y

    donates = jaxobs.jit(lambda x: x + 1, donate_argnums=0, name="donates")
    gone = jnp.ones(3)
    donates(gone)
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        draws_twice(jax.random.key(0))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        branches(jnp.float32(1))
    with pytest.raises(TypeError):
        adds(jnp.ones(3), jnp.ones(4))
    with pytest.raises((ValueError, RuntimeError)):
        donates(gone)
    with pytest.raises(jax.errors.JAXTypeError):
        branches(jnp.float32(2))
    rows = {each.name.rpartition(".")[2]: each for each in jaxobs.snapshot().functions}
    assert dict(rows["draws_twice"].errors) == {"KeyReuseError": 1}
    assert {name: dict(row.error_kinds) for name, row in rows.items() if row.error_kinds} == {
        "draws_twice": {"key_reuse": 1},
        "branches": {"tracer": 2},
        "adds": {"shapes_disagree": 1},
        "donates": {"deleted_array": 1},
    }
    told = errors()
    assert [each.error_kind for each in told] == ["key_reuse", "tracer", "shapes_disagree", "deleted_array", "tracer"]
    first = told[0]
    assert first.error == "KeyReuseError"
    assert first.function is not None
    assert first.function.endswith("draws_twice")
    assert (first.uncaught, first.report) == (False, None)
    assert first.call_site is not None
    assert first.call_site.startswith(__file__)
    assert "split" in (first.advice or "")


def test_an_error_that_ends_the_program_has_its_kind() -> None:
    """An uncaught exception is told with kind and advice, also where only its cause is known; others without."""
    recorder = flight_recorder.of(store.current())
    try:
        try:
            raise RuntimeError("NCCL operation ncclAllReduce(...) failed: unhandled cuda error")
        except RuntimeError as cause:
            raise ValueError("training failed") from cause
    except ValueError as error:
        recorder.uncaught(error)
    recorder.uncaught(ValueError("bad learning rate"))
    known, unknown = errors()
    assert (known.error, known.error_kind, known.uncaught) == ("ValueError", "nccl", True)
    assert "NCCL_DEBUG" in (known.advice or "")
    assert (unknown.error_kind, unknown.advice) == (None, None)


def test_many_errors_of_one_kind_are_counted_and_some_are_told() -> None:
    """A program that tries again and again does not flood the event log."""

    @jaxobs.jit
    def branches(x: Any) -> Any:
        return x if x > 0 else -x

    for _ in range(flight_recorder.MOST_OF_KIND + 5):
        with pytest.raises(jax.errors.TracerBoolConversionError):
            branches(jnp.float32(1))
    snapshot = jaxobs.snapshot()
    assert len(errors()) == flight_recorder.MOST_OF_KIND
    assert snapshot.observer.dropped["errors"] == 5
    assert [dict(each.error_kinds) for each in snapshot.functions if each.errors] == [{"tracer": 25}]


def test_memory_and_hostile_errors() -> None:
    """Memory keeps its own report; an exception whose text fails has no kind and does no harm."""
    oom = RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1000000256 bytes.")
    kind = user_errors.recognised(oom)
    assert kind is not None
    assert kind.kind == "out_of_memory"

    class HostileError(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

    assert user_errors.recognised(HostileError()) is None
    different = AssertionError("seeds. Expected: [0 1]; got: [0].")
    kind = user_errors.recognised(different)
    assert kind is not None
    assert kind.kind == "inputs_differ"
