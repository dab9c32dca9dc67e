"""Live arrays on four devices as a scrape over HTTP tells of them, against figures made by hand."""

import json

from helpers.run_programs import programs, run

PROGRAM = programs(__file__)["program"]


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
