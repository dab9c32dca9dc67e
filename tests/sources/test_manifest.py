"""The manifest: versions, flags, options, devices and the commit, without waking, running or leaking anything."""

import pathlib
import subprocess
import sys

import jax
import pytest

from jaxobs import internals
from jaxobs.facts.process import Manifest
from jaxobs.sources import process
from jaxobs.sources.support import manifest
from jaxobs.state.store import Store
from jaxobs.testing import FakeClient, FakeDevice, backends

pytestmark = pytest.mark.usefixtures("fresh")

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_flags_are_those_of_the_allow_list() -> None:
    """A variable with a secret is not told, however it is called; values are bounded."""
    environment = {
        "XLA_FLAGS": "--xla_gpu_x=1", "NCCL_DEBUG": "INFO", "AWS_SECRET_ACCESS_KEY": "s", "JAX_TOKEN": "s",
        "LIBTPU_INIT_ARGS": "", "NCCL_IB_HCA": "y" * 9000,
    }  # fmt: skip
    assert manifest.flags(environment) == {
        "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "y" * manifest.MOST_TEXT, "XLA_FLAGS": "--xla_gpu_x=1"
    }  # fmt: skip


def test_jaxs_options_are_told_as_they_are() -> None:
    """Set by the program or by a variable, on every supported version."""
    before = jax.config.jax_compilation_cache_max_size
    jax.config.update("jax_compilation_cache_max_size", 12345)
    try:
        assert internals.options()["jax_compilation_cache_max_size"] == "12345"
    finally:
        jax.config.update("jax_compilation_cache_max_size", before)


@pytest.mark.parametrize("packed", [False, True])
def test_the_commit_is_read_from_gits_files(tmp_path: pathlib.Path, packed: bool) -> None:
    """From a directory inside the repository; references may be packed."""
    git = tmp_path / "repository" / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    inside = tmp_path / "repository" / "src" / "deep"
    inside.mkdir(parents=True)
    assert manifest.commit(str(inside)) is None
    if packed:
        (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{COMMIT} refs/heads/main\n")
    else:
        (git / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
    assert manifest.commit(str(inside)) == COMMIT
    (git / "HEAD").write_text(f"{COMMIT[::-1]}\n")
    assert manifest.commit(str(inside)) == COMMIT[::-1]


def test_a_work_tree_has_its_commit_too(tmp_path: pathlib.Path) -> None:
    """There `.git` is a file that names another place, and the references are shared. Compared with git itself."""
    main, tree = tmp_path / "main", tmp_path / "tree"

    def git(*arguments: str) -> str:
        named = ("-c", "user.name=a", "-c", "user.email=a@b", "-C", str(main))
        done = subprocess.run(("git", *named, *arguments), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    main.mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("worktree", "add", "-q", str(tree))
    assert (tree / ".git").is_file()
    assert manifest.commit(str(tree)) == manifest.commit(str(main)) == git("rev-parse", "HEAD")


def test_no_repository_no_commit(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".git").write_text("nothing")
    assert manifest.commit(str(tmp_path)) is None


def _package(folder: pathlib.Path, name: str, version: str) -> None:
    place = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_cudas_libraries_are_told_where_a_plugin_loads_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """Without a plugin that loads them, they are another framework's."""
    _package(tmp_path, "nvidia-cudnn-cu13", "9.99.1")
    _package(tmp_path, "nvidia-cuda-runtime", "13.9.1")
    _package(tmp_path, "libtpu", "0.0.99")
    monkeypatch.syspath_prepend(tmp_path)
    assert manifest.packages(["jax-cuda13-plugin 0.10.2"]).items() >= {
        "cudnn": "9.99.1", "cuda": "13.9.1", "libtpu": "0.0.99"
    }.items()  # fmt: skip
    assert manifest.packages() == {"libtpu": "0.0.99"}


def test_it_is_told_again_with_the_devices() -> None:
    """Once: when a backend is awake. Before that nothing of it is known, and nothing is woken to learn it."""
    jax.devices()
    store = Store()
    source = process.source(store)
    source.start()
    devices = [FakeDevice(0), FakeDevice(1), FakeDevice(2, process_index=1), FakeDevice(3, process_index=1)]
    client = FakeClient(devices, platform=internals.default_platform() or "")
    with backends(client):
        source.sample()
        source.sample()
    first, second = (event for event in store.events()[0] if isinstance(event, Manifest))
    assert first.config == second.config
    assert second.platform == internals.default_platform()
    assert sum(second.devices.values()) == 4
    assert second.devices_by_process == {"0": 2, "1": 2}


def test_nothing_is_woken() -> None:
    script = (
        "import jax, jaxobs; from jaxobs import internals; from jaxobs.session import lifecycle;"
        "from jaxobs.sources.support import manifest; jaxobs.install();"
        "lifecycle._session.sample(); print(manifest.topology(), internals.backends_awake())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{} False"
