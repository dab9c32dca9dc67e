"""Errors known by their text: the kind, what it means and what to do; counted by function, and told as events."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
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

KINDS_OF_TEXTS = tomllib.loads(Path(__file__).with_name("wordings.toml").read_text(encoding="utf-8"))["kinds"]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in KINDS_OF_TEXTS.items() for text in texts])
def test_texts_of_the_field_are_known_whatever_their_type(kind: str, text: str) -> None:
    """NCCL, the distributed runtime, chips and libraries: by the text alone."""
    for types in (RUNTIME, ("ValueError",), ("XlaRuntimeError",)):
        found = recognise(types, f"{text}\nmore of it")
        assert found is not None
        assert found.kind == kind


def test_ordinary_errors_are_not_known() -> None:
    """An error that a user's program raises for reasons of its own is left alone."""
    for name, text in (
        ("ValueError", "bad learning rate: -1"),
        ("KeyError", "'image'"),
        ("AssertionError", "loss went up"),
        ("FloatingPointError", "underflow encountered in multiply"),
        ("RuntimeError", "DataLoader worker (pid 12) exited unexpectedly"),
        ("FileNotFoundError", "No such file or directory: 'data/train.npz'"),
        ("TimeoutError", "download timed out"),
        ("ValueError", "invalid value (nan) encountered in my own check"),
    ):
        assert recognise((name,), text) is None


def test_the_table_is_whole() -> None:
    """Each kind has one name, signs that compile, a meaning and an advice, as sentences."""
    assert len({each.kind for each in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert re.fullmatch(r"[a-z_]+", kind.kind)
        assert kind.signs or kind.kind == "out_of_memory"
        assert kind.meaning.endswith(".")
        assert kind.advice.endswith(".")
    raised_below = {"nonfinite", "key_reuse", "tracer", "shapes_disagree", "out_of_memory", "inputs_differ"}
    assert KINDS_OF_TEXTS.keys() | raised_below == set(error_texts.BY_NAME)


def errors() -> list[Error]:
    """The events so far."""
    return [each for each in store.current().events(kind="error")[0] if isinstance(each, Error)]


def test_real_errors_of_jax_are_known_and_counted_by_function() -> None:
    """Key reuse, tracers, shapes, donated arrays: type and kind in the snapshot, kind and advice as an event."""

    @jaxobs.jit
    def draws_twice(key: Any) -> Any:
        return jax.random.normal(key) + jax.random.uniform(key)

    @jaxobs.jit
    def adds(x: Any, y: Any) -> Any:
        return x + y

    branches = jaxobs.jit(lambda x: x if x > 0 else -x, name="branches")
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
        "draws_twice": {"key_reuse": 1}, "branches": {"tracer": 2}, "adds": {"shapes_disagree": 1},
        "donates": {"deleted_array": 1},
    }  # fmt: skip
    told = errors()
    assert [each.error_kind for each in told] == ["key_reuse", "tracer", "shapes_disagree", "deleted_array", "tracer"]
    first = told[0]
    assert (first.error, first.uncaught, first.report) == ("KeyReuseError", False, None)
    assert str(first.function).endswith("draws_twice") and str(first.call_site).startswith(__file__)
    assert "split" in str(first.advice)


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
    branches = jaxobs.jit(lambda x: x if x > 0 else -x, name="branches")
    for _ in range(flight_recorder.MOST_OF_KIND + 5):
        with pytest.raises(jax.errors.TracerBoolConversionError):
            branches(jnp.float32(1))
    snapshot = jaxobs.snapshot()
    assert len(errors()) == flight_recorder.MOST_OF_KIND
    assert snapshot.observer.dropped["errors"] == 5
    assert [dict(each.error_kinds) for each in snapshot.functions if each.errors] == [{"tracer": 25}]


def test_memory_and_hostile_errors() -> None:
    """Memory keeps its own report; an exception whose text fails has no kind and does no harm."""

    class HostileError(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

        __repr__ = __eq__ = __bool__ = __str__  # type: ignore[assignment]

    class Hostile:
        __str__ = __repr__ = HostileError.__str__

    hostile = HostileError(Hostile())
    hostile.__cause__ = HostileError()
    full = RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1000000256 bytes.")
    for error, kind in (
        (full, "out_of_memory"), (RuntimeError(full), "out_of_memory"),
        (ValueError(Hostile()), None), (MemoryError(Hostile(), 1), "out_of_memory"), (hostile, None),
        (AssertionError("seeds. Expected: [0 1]; got: [0]."), "inputs_differ"), (HostileError(), None),
    ):  # fmt: skip
        found = user_errors.recognised(error)
        assert (found and found.kind) == kind
