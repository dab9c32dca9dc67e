"""Traces of JAX itself, against counts of another reader."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs.profiles import reading
from jaxobs.profiles.reading import Reading

STEPS = 3


def traced(folder: Path, step: Any, *arguments: Any) -> Reading:
    jax.block_until_ready(step(*arguments))
    jax.profiler.start_trace(folder)
    for number in range(STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            jax.block_until_ready(step(*arguments))
    jax.profiler.stop_trace()
    return reading.read(folder)


def scanned(x: jax.Array) -> jax.Array:
    def body(carry: jax.Array, _: None) -> tuple[jax.Array, None]:
        with jax.named_scope("layer1"):
            return jnp.tanh(carry @ carry), None

    return jax.lax.scan(body, x, None, length=4)[0].sum()


@pytest.fixture(scope="module")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    return traced(tmp_path_factory.mktemp("looped"), jax.jit(scanned), jnp.ones((200, 200)))


@pytest.mark.filterwarnings("ignore:builtin type")  # of JAX's; an error there ends the process
def test_busy_time_is_that_of_an_independent_count(looped: Reading) -> None:
    """JAX's own reader, and moments counted in another way: by a sweep over beginnings and ends."""
    data = pytest.importorskip("jax.profiler").ProfileData.from_file(looped.files[0])
    edges, counts = [], Counter[str]()
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                if (operation := dict(event.stats).get("hlo_op")) is not None:
                    edges += [(event.start_ns, 1), (event.start_ns + event.duration_ns, -1)]
                    counts[operation] += 1
    busy, running, since = 0.0, 0, 0.0
    for at, change in sorted(edges, key=lambda edge: (edge[0], -edge[1])):
        since = at if running == 0 else since
        running += change
        busy += at - since if running == 0 else 0.0
    [device] = looped.profile.devices
    assert device.busy_seconds == pytest.approx(busy * 1e-9, rel=1e-6)
    assert {each.operation: each.count for each in looped.profile.operations} == counts


def test_products_are_found_with_their_scope_line_and_costs(looped: Reading) -> None:
    products = [each for each in looped.profile.operations if each.category == "matmul"]
    [product] = [each for each in products if each.scope is not None and "layer1" in each.scope]
    assert product.function == "scanned"
    assert product.scope is not None and product.scope.startswith("jit(scanned)/")
    assert product.source is not None and product.source.startswith(__file__)
    assert product.count == STEPS * 4
    assert product.flops == pytest.approx(STEPS * 4 * 2 * 200**3, rel=0.01)
    assert product.bytes == pytest.approx(STEPS * 4 * 2 * 200 * 200 * 4, rel=0.6)
    assert product.bound == "unknown", "a CPU has no data sheet"


def test_steps_and_calls_are_counted(looped: Reading) -> None:
    assert looped.profile.steps == STEPS
    assert [(each.function, each.calls) for each in looped.profile.functions] == [("scanned", STEPS)]


def test_time_is_in_exactly_one_operation(looped: Reading) -> None:
    """On one row operations add up to the busy time; beside each other, to at least that."""
    busy = sum(each.busy_seconds for each in looped.profile.devices)
    own = sum(each.device_seconds for each in looped.profile.operations)
    assert own >= busy * 0.99
    assert own == pytest.approx(sum(each.device_seconds for each in looped.profile.functions))
    idle = sum(each.seconds for each in looped.profile.idle)
    window = looped.profile.window_seconds * len(looped.profile.devices)
    assert idle + busy == pytest.approx(window)


def test_exchanges_between_devices(tmp_path: Path) -> None:
    """Eight devices, each with its time, and a sum over all of them."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))

    def added(x: jax.Array) -> jax.Array:
        return jnp.sin(x @ x.T).sum(0)

    profile = traced(tmp_path, jax.jit(added, out_shardings=whole), jax.device_put(jnp.ones((64, 32)), split)).profile
    found = defaultdict(int)
    for each in profile.operations:
        found[each.category] += each.count
    assert found["collective"] >= STEPS * 8
    assert profile.collectives is not None
    assert 0 < profile.collectives.exposed_seconds <= profile.collectives.seconds
    assert [each.calls for each in profile.functions] == [STEPS]
    assert [each.device for each in profile.devices] == [f"cpu:{number}" for number in range(8)]


def test_a_lambda_keeps_its_name(tmp_path: Path) -> None:
    """XLA's name for the program has no room for its brackets."""
    profile = traced(tmp_path, jax.jit(lambda x: jnp.cos(x @ x)), jnp.ones((50, 50))).profile
    assert [each.function for each in profile.functions] == ["<lambda>"]
