"""Programs: sizes and operations against what JAX says of the same program, instructions by hand, and the warning."""

import gc
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.made_by_hand import compilation
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxobs
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.internals.hlo import text as hlo_text
from jaxobs.metrics.catalogue import METRICS
from jaxobs.metrics.subjects.programs import MOST_PROGRAMS
from jaxobs.sources.support.programs import MOST_PENDING, NAME, Programs
from jaxobs.state.store import Store, current
from jaxobs.testing import FakeDevice

pytestmark = pytest.mark.usefixtures("fresh")

SIZES = {"argument": 4000, "output": 100, "temp": 500, "alias": 40, "code": 7}


class _Executable:
    """A loaded program as it is read before its first call."""

    fingerprint = b"1"

    def __init__(self, *devices: FakeDevice) -> None:
        self._devices = devices

    def local_devices(self) -> list[FakeDevice]:
        return list(self._devices)


def _function(snapshot: Snapshot, name: str) -> FunctionState:
    [found] = [each for each in snapshot.functions if each.name.endswith(name)]
    return found


# ------------------------------------------------------------------------------------------------ real programs


def test_a_program_as_jax_itself_tells_of_it() -> None:
    """Sections, operations and bytes as of the ahead-of-time compile; instructions once it was read; and which."""
    jaxobs.install(sample_interval=60)

    def measured(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = jnp.tanh(x @ w) / (1 + jnp.sum(x, axis=0))
        return x

    mesh = Mesh(np.array(jax.devices()), ("data",))
    x = jax.device_put(np.ones((16, 24), np.float32), NamedSharding(mesh, PartitionSpec("data")))
    w = jax.device_put(np.ones((24, 24), np.float32), NamedSharding(mesh, PartitionSpec()))
    step = jax.jit(measured)
    step(x, w)
    _sample()
    program = _function(current().snapshot(), "measured").program
    assert program is not None
    compiled = step.lower(x, w).compile()
    stats, costs = compiled.memory_analysis(), compiled.cost_analysis()
    costs = costs[0] if isinstance(costs, list) else costs
    assert program.memory["argument"] == stats.argument_size_in_bytes == (2 * 24 + 24 * 24) * 4
    assert program.memory["temp"] == stats.temp_size_in_bytes
    assert program.flops == costs["flops"]
    assert program.bytes_accessed == costs["bytes accessed"]
    assert program.instructions is not None
    assert program.instructions["collective"] == 3
    assert program.instructions["fusion"] > 0
    assert program.collective_bytes == {"all-reduce": 3 * 24 * 4}
    [event] = [e for e in current().events(kind="compilation")[0] if e.function.endswith("measured")]  # type: ignore[attr-defined]
    assert program.fingerprint == event.fingerprint is not None  # type: ignore[attr-defined]


def test_the_latest_program_counts_and_a_derived_one_gives_way() -> None:
    jaxobs.install(sample_interval=60)

    @jax.jit
    def replaced(x: Any) -> Any:
        return jnp.sin(x) * x

    replaced(jnp.ones(10))
    jax.grad(lambda x: replaced(x).sum())(jnp.ones(10))
    for _ in range(9):
        _sample()
    first = _function(current().snapshot(), "replaced").program
    assert first is not None and first.transform is None and first.instructions is not None
    replaced(jnp.ones(20))
    second = _function(current().snapshot(), "replaced").program
    assert second is not None and second.instructions is None
    _sample()
    second = _function(current().snapshot(), "replaced").program
    assert second is not None
    assert second.memory["argument"] == 2 * first.memory["argument"]


def test_a_program_that_is_gone_is_passed_over() -> None:
    from jaxobs.session import lifecycle

    jaxobs.install(sample_interval=60)

    @jax.jit
    def kept(x: Any) -> Any:
        return x * 3

    def gone(x: Any) -> Any:
        return x * 5

    kept(jnp.ones(3))
    once = jax.jit(gone)
    once(jnp.ones(3))
    lifecycle._session._sampler.stop()
    client = jax.devices()[0].client
    before = len(client.live_executables())
    once.clear_cache()
    del once
    gc.collect()
    assert len(client.live_executables()) < before
    for _ in range(4):
        _sample()
    snapshot = current().snapshot()
    kept_program, lost = _function(snapshot, "kept").program, _function(snapshot, "gone").program
    assert kept_program is not None and kept_program.instructions is not None
    assert lost is not None and lost.instructions is None
    assert snapshot.executables == len(client.live_executables())


def _sample() -> None:
    from jaxobs.session import lifecycle

    assert lifecycle._session is not None
    lifecycle._session.sample()


# -------------------------------------------------------------------------------------------------- bounded


def test_the_largest_programs_have_series_and_the_snapshot_has_all() -> None:
    """Ten series a function: of many functions those that take most memory; eager operations have none."""
    store = Store()
    for number in range(20):
        store.record(compilation(f"f{number}", flops=1.0, memory={"argument": number, "temp": 1, "output": 1}))
    store.record(compilation("add", eager=True, flops=1.0, memory=SIZES))
    snapshot = store.snapshot()
    assert sum(each.program is not None for each in snapshot.functions) == 20
    for metric in METRICS:
        if metric.name.startswith("jax_program_") and metric.name != "jax_program_instructions":
            functions = {labels[0] for labels, _ in metric.read(snapshot)}
            assert functions == {f"f{number}" for number in range(20 - MOST_PROGRAMS, 20)}


def test_programs_that_wait_to_be_read_are_bounded() -> None:
    store = Store()
    programs = Programs(store)
    for number in range(MOST_PENDING + 5):
        programs.loaded(compilation(f"f{number}"), _Executable())
    assert store.snapshot().observer.dropped == {"programs_unread": 5}


# ------------------------------------------------------------------------------------------------- the warning


def _warned(*left: int | None, **fields: Any) -> list[Finding]:
    """Warnings for a program on devices with so many bytes left of 10,000; None: no limit told."""
    store = Store()
    devices = [
        FakeDevice(
            n,
            statistics={"bytes_in_use": 10_000 - (room or 0), **({"bytes_limit": 10_000} if room is not None else {})},
        )
        for n, room in enumerate(left)
    ]
    event = store.record(compilation(**({"memory": SIZES} | fields)))
    Programs(store).loaded(event, _Executable(*devices))
    return list(store.snapshot().findings)


def test_a_program_that_does_not_fit_is_told_before_its_first_call() -> None:
    """By what it needs beside its arguments, on the fullest of the devices that it runs on."""
    [finding] = _warned(5000, 559, 700)
    assert (finding.finding, finding.function, finding.subject) == (NAME, "train.step", "gpu:1")
    assert finding.data == {"needed_bytes": 560, "left_bytes": 559, "limit_bytes": 10_000, "device": "gpu:1"}
    assert (
        "`train.step` needs 560 B besides its arguments, but gpu:1 has only 559 B left of 9.77 KiB" in finding.summary
    )
    assert "temporaries" in finding.advice
    [finding] = _warned(10, memory=SIZES | {"output": 3000})
    assert "donate" in finding.advice


@pytest.mark.parametrize(
    ("left", "fields"),
    [((560,), {}), ((None,), {}), ((), {}), ((1,), {"memory": {}}), ((1,), {"eager": True})],
    ids=["fits", "no limit", "no device", "sizes unknown", "eager"],
)
def test_no_warning_without_need_or_knowledge(left: tuple[int | None, ...], fields: dict[str, Any]) -> None:
    assert _warned(*left, **fields) == []


def test_a_device_that_cannot_be_asked_is_left_out() -> None:
    store = Store()
    lost, full = (
        FakeDevice(0, statistics=RuntimeError("lost")),
        FakeDevice(1, statistics={"bytes_in_use": 9, "bytes_limit": 10}),
    )
    programs = Programs(store)
    for sequence in (1, 2):
        programs.loaded(compilation(memory=SIZES, sequence=sequence), _Executable(lost, full))
    [finding] = store.snapshot().findings
    assert (finding.subject, finding.count, finding.sequences) == ("gpu:1", 2, (2,))


# -------------------------------------------------------------------------------------------- the program's text

TEXT = Path(__file__).with_name("step.hlo").read_text(encoding="utf-8")


def test_instructions_by_hand() -> None:
    """Fusions are one each, a started operation counts once, a loop's body once, an applied function not at all."""
    kinds, collectives = hlo_text.read(TEXT)
    # compare, reduce, while, copy
    assert kinds == {"fusion": 1, "custom_call": 1, "collective": 5, "other": 4}
    assert collectives == {
        "all-reduce": 4 * 4 + 6 * 2,
        "all-gather": 16 * 4 * 4 + 2 + 6,
        "reduce-scatter": 16,
        "collective-permute": 8 * 4 * 4,
    }
    assert hlo_text.read(TEXT.replace("%", "")) == (kinds, collectives)


def test_a_text_that_is_none_gives_nothing() -> None:
    for text in ("", "\n\n", "no program at all {", "HloModule x\n"):
        kinds, collectives = hlo_text.read(text)
        assert (sum(kinds.values()), collectives) == (0, {})
