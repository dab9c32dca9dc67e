"""Python environments with one version of JAX each, for the version matrix: kept in `.venvs`, made again when needed.

python -m tools.environments                            makes all that are missing
python -m tools.environments GROUP                      makes those: matrix, ray, trackers, xprof, zoo; fuzz,
                                                        free-threaded and torch-xla, which all leaves out
python -m tools.environments --list                     says what there is
"""

from __future__ import annotations

import argparse
import datetime
import functools
import glob
import importlib.metadata
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venvs"
NEWEST = "newest"
INSTALL_SECONDS = 900


@dataclass(frozen=True)
class Row:
    """A version of JAX, and the Python versions that suit it, the best first."""

    jax: str
    pythons: tuple[str, ...]
    packages: tuple[str, ...] = ("flax", "equinox")
    """Packages installed next to JAX and prometheus-client."""
    name: str = ""
    """For an environment that is there for its packages."""
    options: tuple[str, ...] = ()
    """Options of `uv pip install`, which such an environment then needs."""

    @property
    def id(self) -> str:
        """Name of the row in the tests' report."""
        if self.name:
            return self.name
        return f"jax-{self.jax}-py{self.pythons[0]}" if self.jax == NEWEST else f"jax-{self.jax}"


def own_jax() -> str | None:
    """The version of JAX that this interpreter has."""
    try:
        return importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return None


def own_python() -> str:
    """The version of this interpreter, like `3.12`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


MATRIX = (
    Row("0.6.0", ("3.11", "3.12", "3.13")),
    Row("0.6.2", ("3.11", "3.12", "3.13")),
    Row("0.7.2", ("3.11", "3.12", "3.13")),
    Row("0.8.3", ("3.11", "3.12", "3.13")),
    Row("0.9.2", ("3.11", "3.12", "3.13")),
    Row("0.10.2", ("3.11", "3.12", "3.13")),
    Row("0.11.2", ("3.12", "3.13")),
    Row(NEWEST, ("3.12",)),
    Row(NEWEST, ("3.13",)),
    Row(NEWEST, ("3.14",)),
)
OWN = Row(own_jax() or NEWEST, (own_python(),))
"""Row of the interpreter that runs this."""
RAY = Row("0.10.2", ("3.11", "3.12", "3.13"), packages=("ray[serve]==2.60.0",), name="ray")
"""Ray is large, and pins packages that others want newer."""
BENTOML = Row("0.10.2", ("3.11", "3.12", "3.13"), packages=("bentoml==1.4.40",), name="bentoml")
"""BentoML holds back OpenTelemetry and others."""
TRITON = Row("0.6.2", ("3.11", "3.12", "3.13"), packages=("nvidia-pytriton==0.7.0",), name="triton")
"""A server of Triton for CPUs, with its Python backend; the package refuses NumPy 2, which newer JAX needs."""
TRACKERS = Row(
    "0.10.2",
    ("3.11", "3.12", "3.13"),
    packages=("mlflow-skinny==3.17.2", "tensorboardX==2.6.5", "wandb==0.31.0"),
    name="trackers",
)
"""Each has a hundred dependencies or another idea of protobuf."""
XPROF = Row("0.10.2", ("3.11", "3.12", "3.13"), packages=("xprof==2.24.2", "tensorboard==2.21.0"), name="xprof")
"""XProf, with which `jaxobs profile` is compared, and TensorBoard, whose profile plugin is XProf."""
FREE_THREADED = Row(NEWEST, ("3.13t",), packages=(), options=("--only-binary=:all:",))
"""Without the GIL, for `make trust`; `tools/newer_python 3.13t` builds such a Python."""
FUZZ = Row("0.10.2", ("3.11", "3.12", "3.13"), packages=("atheris==3.0.0", "pyyaml==6.0.4"), name="fuzz")
"""Coverage-guided fuzzing: `python -m tools.fuzz_readers --guided 60`."""
_ZOO_PYTHONS = ("3.11", "3.12", "3.13")
ZOO = Row(
    "0.10.2",
    _ZOO_PYTHONS,
    packages=(
        "chex==0.1.92",
        "diffrax==0.7.2",
        "dm-haiku==0.0.17",
        "equinox==0.13.8",
        "flax==0.12.8",
        "grain==0.2.18",
        "keras==3.15.1",
        "numpyro==0.22.0",
        "optax==0.2.8",
        "optimistix==0.1.0",
        "optree==0.20.0",
        "orbax-checkpoint==0.12.8",
        "penzai==0.2.5",
        "scikit-learn==1.9.1",
    ),
    name="zoo",
)
"""The programs of `tools.zoo`, but for those of Brax, MJX, Tunix, Qwix and Tokamax."""
ZOO_BRAX = Row(
    "0.9.2",
    _ZOO_PYTHONS,
    packages=("brax==0.14.2", "flax==0.12.6", "mujoco-mjx==3.17.0", "orbax-checkpoint==0.12.8"),
    name="zoo-brax",
)
"""Brax 0.14.2 calls `jax.device_put_replicated`, which JAX 0.10 no longer has."""
ZOO_MAXTEXT = Row(
    "0.11.2",
    ("3.12", "3.13"),
    packages=(
        "absl-py==2.5.1",
        "aqtp==0.9.0",
        "array-record==0.8.6",
        "chex==0.1.92",
        "cloud-accelerator-diagnostics==0.1.1",
        "datasets==5.2.0",
        "drjax==0.2.1",
        "flax==0.12.12",
        "grain==0.2.18",
        "google-cloud-storage==3.17.1",
        "jaxtyping==0.3.11",
        "jinja2==3.1.6",
        "jsonlines==4.0.0",
        "maxtext==0.2.5",
        "ml-collections==1.1.0",
        "ml-goodput-measurement==0.2.3",
        "omegaconf==2.4.0",
        "optax==0.2.8",
        "orbax-checkpoint==0.12.8",
        "pandas==3.1.1",
        "pathwaysutils==0.1.13",
        "pillow==13.0.0",
        "psutil==7.2.2",
        "pydantic==2.14.3",
        "qwix==0.1.8",
        "sentencepiece==0.2.3",
        "sympy==1.14.0",
        "tensorboardx==2.6.5",
        "tiktoken==0.14.0",
        "tokamax==0.0.15",
        "transformers==5.23.0",
    ),
    name="zoo-maxtext",
)
"""MaxText requires none of the packages that its training imports."""
TORCH_XLA = Row(
    "0.10.2", ("3.11", "3.12", "3.13"), packages=("numpy", "torch==2.9.0", "torch_xla==2.9.0"), name="torch-xla"
)
"""PyTorch/XLA on the CPU for `make test-torch-xla`: 7 GB, for PyPI's torch brings CUDA's libraries."""
ZOO_KERNELS = Row(
    "0.10.2",
    ("3.12", "3.13"),
    packages=("flax==0.12.8", "google-tunix==0.1.7", "optax==0.2.8", "qwix==0.1.8", "tokamax==0.0.15"),
    name="zoo-kernels",
)
"""Tunix has a hundred dependencies, and Tokamax needs Python 3.12."""
_ZOO, SERVERS = (ZOO, ZOO_BRAX, ZOO_KERNELS, ZOO_MAXTEXT), (RAY, BENTOML, TRITON)
GROUPS = {
    "all": (*MATRIX, *SERVERS, TRACKERS, XPROF, *_ZOO), "matrix": MATRIX, "ray": SERVERS, "trackers": (TRACKERS,),
    "xprof": (XPROF,), "zoo": _ZOO, "fuzz": (FUZZ,), "free-threaded": (FREE_THREADED,), "torch-xla": (TORCH_XLA,),
}  # fmt: skip


class NoInterpreterError(Exception):
    """This machine has no Python of the versions that a row can use."""


class InstallError(Exception):
    """An environment could not be made; the message has the end of the installer's output."""


def environment(row: Row) -> Path:
    """The interpreter of the row's environment, which is made if it is missing or its recipe changed.

    Raises:
      NoInterpreterError: no Python here will do.
      InstallError: the packages could not be installed and no earlier environment is there.
    """
    if is_ours(row):
        return Path(sys.executable)
    version, base = _interpreter(row)
    folder = _folder(row, version)
    python, stamp = folder / "bin" / "python", folder / "recipe.txt"
    recipe = _recipe(row, base)
    if stamp.exists() and stamp.read_text() == recipe and python.exists():
        return python
    try:
        _make(row, base, folder)
    except InstallError:
        if row.jax == NEWEST and stamp.exists() and python.exists():
            return python
        raise
    stamp.write_text(recipe)
    return python


def installed(row: Row) -> bool:
    """Whether nothing needs to be fetched for the row."""
    if is_ours(row):
        return True
    version, base = _interpreter(row)
    stamp = _folder(row, version) / "recipe.txt"
    return stamp.exists() and stamp.read_text() == _recipe(row, base)


def is_ours(row: Row) -> bool:
    """Returns whether this interpreter is the row's."""
    return not row.name and row.jax == own_jax() and own_python() in row.pythons


def _folder(row: Row, version: str) -> Path:
    return FOLDER / f"{row.name or row.jax}-py{version}"


def _requirements(row: Row) -> list[str]:
    return [*row.options, "jax" if row.jax == NEWEST else f"jax=={row.jax}", "prometheus-client", *row.packages]


def _recipe(row: Row, base: str) -> str:
    """Returns what an environment is made from; the newest JAX is asked for again each week."""
    year, week, _ = datetime.date.today().isocalendar()
    fresh = f"{year} week {week}" if row.jax == NEWEST else ""
    return "\n".join([base, *_requirements(row), fresh, ""])


def _make(row: Row, base: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    uv, python = _uv(), str(folder / "bin" / "python")
    if uv is not None:
        _run([uv, "venv", "--quiet", "--python", base, str(folder)])
        _run([uv, "pip", "install", "--quiet", "--python", python, *_requirements(row)])
    else:
        _run([base, "-m", "venv", str(folder)])
        _run([python, "-m", "pip", "install", "--quiet", *_requirements(row)])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise InstallError(f"`{' '.join(command)}` took more than {INSTALL_SECONDS} s.") from None
    if done.returncode:
        raise InstallError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stderr[-1500:]}")


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _interpreter(row: Row) -> tuple[str, str]:
    """Version and path of the first of the row's Pythons that this machine has."""
    for version in row.pythons:
        path = find_python(version)
        if path is not None:
            return version, path
    raise NoInterpreterError(
        f"JAX {row.jax} needs Python {' or '.join(row.pythons)}, which this machine does not have. "
        f"Put `python{row.pythons[0]}` on the PATH, or install it with: uv python install {row.pythons[0]}; on Debian "
        f"also with: tools/newer_python {row.pythons[0]}"
    )


@functools.cache
def find_python(version: str) -> str | None:
    """Path of a Python of that version which runs: ours, on the PATH, `tools/newer_python`'s, pyenv's or uv's."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = [
        sys.executable,
        shutil.which(f"python{version}"),
        str(ROOT / ".tools" / f"python{version}" / "usr" / "bin" / f"python{version}"),
        *sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python{version}"), reverse=True),
        _uv_python(version),
    ]
    return next((path for path in candidates if path is not None and _version(path) == version), None)


def _uv_python(version: str) -> str | None:
    uv = _uv()
    if uv is None:
        return None
    command = [uv, "python", "find", "--quiet", "--no-project", "--no-python-downloads", version]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or None


def _version(path: str) -> str | None:
    """`3.12` for a Python that runs, `3.13t` for one without the GIL; None for a shim that leads nowhere."""
    command = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2] + 't' * ('t' in sys.abiflags))"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> int:
    """Makes or lists the environments, one line each."""
    parser = argparse.ArgumentParser(prog="python -m tools.environments", description="Environments of the matrix.")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("which", nargs="?", choices=GROUPS, default="all", help=f"{', '.join(GROUPS)}; all by default")
    given, failures = parser.parse_args(), 0
    only_list: bool = given.list
    for row in GROUPS[given.which]:
        try:
            if only_list or installed(row):
                print(f"{row.id}: {'ready' if installed(row) else 'missing'}", flush=True)
            else:
                print(f"{row.id}: installing ...", flush=True)
                environment(row)
        except NoInterpreterError as error:
            print(f"{row.id}: left out. {error}", flush=True)
        except InstallError as error:
            failures += 1
            print(f"{row.id}: failed. {error}", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
