"""Environments that were written down before the doctor saw them: bad ones are named, healthy ones are left alone."""

import functools
import os
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxobs.ops import doctor
from jaxobs.ops.doctor.machine import LEVELS, Finding, Machine
from jaxobs.ops.doctor.probes import Imported, import_jax

ENVIRONMENTS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "environments.toml").read_text()
)["environment"]  # fmt: skip
OURS = ("JAX_", "JAXOBS_", "XLA_", "NCCL_", "TPU_", "TF_CPP_", "CUDA_")


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Ports, a name and a folder of this machine, which stand in environments."""
    with socket.create_server(("", 0)) as busy, socket.socket() as idle:
        idle.bind(("", 0))
        free = str(idle.getsockname()[1])
        idle.close()
        yield {"taken": str(busy.getsockname()[1]), "free": free, "host": socket.gethostname(), "folder": str(tmp_path)}


@functools.cache
def plain_import() -> Imported:
    """Answer of `import jax` without variables of JAX or XLA, which is the same in all of these environments."""
    return import_jax({name: value for name, value in os.environ.items() if not name.startswith(OURS)}, Path.cwd())


def findings(case: dict[str, Any], places: dict[str, str], folder: Path) -> list[Finding]:
    """Findings of all checks, with real imports of JAX, of a machine with such devices and interfaces."""
    root = folder / "root"
    files = [f"dev/nvidia{number}" for number in range(case.get("gpus", 0))]
    files += [f"dev/accel{number}" for number in range(case.get("tpus", 0))]
    files += [f"sys/class/net/{name}/mtu" for name in case.get("interfaces", ())]
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for name in case.get("folders", ()):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(OURS) and "proxy" not in name}
    made = Machine({**plain, **{name: value.format(**places) for name, value in case["set"].items()}}, root, folder)
    made.defaults = plain_import()
    if not any(name.startswith(("JAX", "XLA")) for name in case["set"]):
        made.imported = plain_import()
    return [each for each in doctor.examine(made) if each.severity != "ok"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [each for each in ENVIRONMENTS if not each.get("missed")],
    ids=lambda case: f"{case['about']}-{case['round']}",
)
def test_what_the_doctor_says(case: dict[str, Any], places: dict[str, str], tmp_path: Path) -> None:
    before = {(each.id, each.title) for each in findings({**case, "set": {}}, places, tmp_path)}
    found = [each for each in findings(case, places, tmp_path) if (each.id, each.title) not in before]
    least = LEVELS.index(case.get("least", "warning"))
    grave = [each for each in found if LEVELS.index(each.severity) >= least]
    said = [f"{each.title} {each.evidence} {each.entity}".lower() for each in grave]
    if "says" in case:
        words = [each.format(**places).lower() for each in case["says"]]
        assert any(all(word in text for word in words) for text in said), found
    else:
        assert not grave, grave
