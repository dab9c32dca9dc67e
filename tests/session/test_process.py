"""The process: what runs here, told once at the start and completed when the backends are awake."""

import importlib.metadata
import os
import pathlib
import platform
import subprocess
import sys

import jax
import jaxlib
import pytest

from jaxobs import internals
from jaxobs.base import guard
from jaxobs.base.version import __version__
from jaxobs.facts.process import Manifest
from jaxobs.sources import process
from jaxobs.state.store import Store
from jaxobs.testing import FakeClient, FakeDevice, backends
from tools.ports import free_port

pytestmark = pytest.mark.usefixtures("fresh")


def test_the_manifest_is_the_first_event() -> None:
    """Versions, program and the number of processes."""
    store = Store()
    store.program = "train.py"
    process.source(store).start()
    [event] = store.events()[0]
    assert isinstance(event, Manifest)
    assert (event.program, event.process_count, event.sequence) == ("train.py", 1, 1)
    expected = {
        "jaxobs": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
    }
    assert expected.items() <= event.versions.items()
    assert store.snapshot().process.versions == event.versions


def test_what_this_jax_lets_us_see_is_told() -> None:
    """On a supported version, all of it."""
    store = Store()
    process.source(store).start()
    capabilities = store.snapshot().observer.capabilities
    assert capabilities == internals.probe()
    assert all(capabilities.values())


def test_the_runtime_is_told_when_it_is_awake() -> None:
    """The version of what runs the accelerator, on one line and bounded; asked for once."""
    jax.devices()
    store = Store()
    client = FakeClient([FakeDevice(0)], platform_version="PJRT C API\ncuda 13000\n" + "x" * 500)
    source = process.source(store)
    source.start()
    assert "runtime" not in store.snapshot().process.versions
    with backends(client):
        source.sample()
    runtime = store.snapshot().process.versions["runtime"]
    assert runtime.startswith("PJRT C API cuda 13000 xxx")
    assert len(runtime) == 120
    client.platform_version = "another"
    with backends(client):
        source.sample()
    assert store.snapshot().process.versions["runtime"] == runtime


def test_plugins_are_named_with_their_version(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """As they are installed: by their entry point for JAX."""
    folder = tmp_path / "jax_fake_plugin-1.2.3.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-fake-plugin\nVersion: 1.2.3\n")
    (folder / "entry_points.txt").write_text("[jax_plugins]\nfake = jax_plugins.fake\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "jax-fake-plugin 1.2.3" in process.versions()["plugin"]


def test_a_package_that_is_installed_badly_costs_its_version_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking through other people's metadata may fail."""
    guard.raise_internal_errors(False)

    def broken(**_: str) -> None:
        raise ValueError("metadata is corrupt")

    monkeypatch.setattr(importlib.metadata, "entry_points", broken)
    assert process.versions()["jax"] == jax.__version__
    assert guard.internal_errors() == {"versions": 1}


def test_a_forked_child_tells_its_own_manifest() -> None:
    """With the first sample after it has used JAX."""
    store = Store()
    source = process.source(store)
    source.start()
    source.after_fork()
    store.after_fork()
    source.sample()
    assert [event.kind for event in store.events()[0]] == ["manifest"]
    source.sample()
    assert len(store.events()[0]) == 1


@pytest.mark.parametrize(
    "look",
    [
        "jaxobs.install(); jaxobs.snapshot()",
        "handle = jaxobs.start(port=0); urllib.request.urlopen(handle.url + 'metrics').read()",
        "jaxobs.install(sample_interval=0.05); time.sleep(0.4); jaxobs.snapshot()",
        "jaxobs.install(); import jax; jaxobs.snapshot()",
        "jaxobs.jit(lambda x: x); jaxobs.install(); jaxobs.uninstall()",
    ],
)
def test_the_backend_is_never_woken(look: str) -> None:
    program = (
        f"import sys, time, urllib.request, jaxobs\n{look}\n"
        "if 'jax' not in sys.modules: import jax\n"
        "from jax._src import xla_bridge\n"
        "assert not xla_bridge._backends, xla_bridge._backends\n"
        "assert jaxobs.snapshot().process.platform is None\n"
        "import jax; jax.distributed.initialize('127.0.0.1:%d', 1, 0)\n"
        "print(jaxobs.snapshot().devices)\n"
    )
    port = free_port()
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", program.replace("%d", str(port))], env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "()\n"), ran.stderr
