"""Live arrays on four devices as a scrape over HTTP tells of them, against figures made by hand."""

from __future__ import annotations

import json
import re
from typing import Any

from helpers.run_programs import run

PROGRAM = """
    import json, os, re, urllib.request
    import jax, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    import jaxobs
    from jaxobs.session import lifecycle

    handle = jaxobs.start(port=0)
    line = Mesh(np.array(jax.devices()), ("x",))
    square = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))

    def scrape(step):
        lifecycle._session.sample()
        body = urllib.request.urlopen(handle.url + "metrics", timeout=120).read().decode()
        found = re.findall(r'^(jax_live_array(?:s|_bytes))[{]device="(cpu:[0-9]+)"[}] ([0-9.e+]+)$', body, re.M)
        print(step, json.dumps([[name, device, float(value)] for name, device, value in found]), flush=True)

    def put(shape, mesh, *spec):
        return jax.device_put(np.zeros(shape, np.float32), NamedSharding(mesh, P(*spec)))

    jax.devices()
    scrape("nothing")
    cut = put((1000, 16), line, "x")
    scrape("sharded")
    whole = put((500, 3), line)
    scrape("replicated")
    partly = put((64, 32), square, "x")
    scrape("partially_replicated")
    both = put((64, 32), square, "y", "x")
    scrape("sharded_twice")
    single = jax.device_put(np.zeros(11, np.float16), jax.devices()[2])
    scrape("on_one_device")
    np.asarray(cut), [shard.data for shard in whole.addressable_shards]
    scrape("read")
    double = jax.jit(lambda x: x * 2, donate_argnums=0)
    cut = double(cut)
    cut.block_until_ready()
    scrape("donated")
    whole.delete()
    scrape("deleted")
    del partly, both
    scrape("dropped")
    del cut, single
    scrape("end")
"""


def _figures(output: str) -> dict[str, dict[str, dict[str, float]]]:
    """By step and metric: the value of each device."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for step, samples in re.findall(r"^(\w+) (\[.*\])$", output, re.M):
        metrics = found.setdefault(step, {})
        for name, device, value in json.loads(samples):
            metrics.setdefault(name, {})[device] = value
    return found


def test_four_devices_as_by_hand_over_http() -> None:
    """Sharded, replicated, both at once, on one device; read, donated, deleted and dropped."""
    ran = run(PROGRAM, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert ran.returncode == 0, ran.stderr
    found = _figures(ran.stdout)

    cut, whole, partly, both = 1000 * 16 * 4 // 4, 500 * 3 * 4, 64 * 32 * 4 // 2, 64 * 32 * 4 // 4
    single = {2: 11 * 2}
    expected: dict[str, list[Any]] = {
        "nothing": [],
        "sharded": [cut],
        "replicated": [cut, whole],
        "partially_replicated": [cut, whole, partly],
        "sharded_twice": [cut, whole, partly, both],
        "on_one_device": [cut, whole, partly, both, single],
        "read": [cut, whole, partly, both, single],
        "donated": [cut, whole, partly, both, single],
        "deleted": [cut, partly, both, single],
        "dropped": [cut, single],
        "end": [],
    }
    assert list(found) == list(expected)
    for step, arrays in expected.items():
        on_each = [
            [size for size in (each.get(device, 0) if isinstance(each, dict) else each for each in arrays) if size]
            for device in range(4)
        ]
        assert found[step] == {
            "jax_live_arrays": {f"cpu:{device}": float(len(sizes)) for device, sizes in enumerate(on_each)},
            "jax_live_array_bytes": {f"cpu:{device}": float(sum(sizes)) for device, sizes in enumerate(on_each)},
        }, step
