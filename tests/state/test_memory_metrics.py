"""Live arrays on four devices as a scrape over HTTP tells of them, against figures made by hand."""

from __future__ import annotations

import json

from helpers.run_programs import run

PROGRAM = """
    import json, re, urllib.request
    import jax, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    import jaxobs
    from jaxobs.session import lifecycle

    handle = jaxobs.start(port=0)
    line = Mesh(np.array(jax.devices()), ("x",))
    square = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))

    def scrape():
        lifecycle._session.sample()
        body = urllib.request.urlopen(handle.url + "metrics", timeout=120).read().decode()
        found = {"jax_live_arrays": {}, "jax_live_array_bytes": {}}
        for name, device, value in re.findall(r'^(jax_live_array(?:s|_bytes))[{]device="(.*)"[}] (.*)$', body, re.M):
            found[name][device] = float(value)
        print(json.dumps(found), flush=True)

    def put(shape, mesh, *spec):
        return jax.device_put(np.zeros(shape, np.float32), NamedSharding(mesh, P(*spec)))

    scrape()
    cut, whole = put((1000, 16), line, "x"), put((500, 3), line)
    scrape()
    partly, both = put((64, 32), square, "x"), put((64, 32), square, "y", "x")
    single = jax.device_put(np.zeros(11, np.float16), jax.devices()[2])
    scrape()
    np.asarray(cut), [shard.data for shard in whole.addressable_shards]
    cut = jax.jit(lambda x: x * 2, donate_argnums=0)(cut)
    cut.block_until_ready()
    scrape()
    whole.delete()
    del partly, both
    scrape()
    del cut, single
    scrape()
"""


def test_four_devices_as_by_hand_over_http() -> None:
    """Sharded, replicated, both at once, on one device; read, donated, deleted and dropped."""
    done = run(PROGRAM, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert done.returncode == 0, done.stderr
    cut, whole, partly, both = 1000 * 16 * 4 // 4, 500 * 3 * 4, 64 * 32 * 4 // 2, 64 * 32 * 4 // 4
    sizes = [[], [cut, whole], [cut, whole, partly, both], [cut, whole, partly, both], [cut], []]
    singles = [0, 0, 11 * 2, 11 * 2, 11 * 2, 0]
    expected = []
    for here, single in zip(sizes, singles, strict=True):
        on_each = [[*here, single] if device == 2 and single else here for device in range(4)]
        expected.append({
            "jax_live_arrays": {f"cpu:{device}": float(len(each)) for device, each in enumerate(on_each)},
            "jax_live_array_bytes": {f"cpu:{device}": float(sum(each)) for device, each in enumerate(on_each)},
        })  # fmt: skip
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
