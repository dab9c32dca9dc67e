"""Builds what a release consists of into `dist/`, and checks it from an empty environment.

python -m tools.release     the wheel, its sdist, the Helm chart, and statements about them: the components with their
                            licences (CycloneDX), and how they were built (in-toto, SLSA)

The version of all comes from jaxobs/base/version.py. Nothing is uploaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from jaxobs.base.version import __version__
from jaxobs.ops.monitoring import generate
from tools import statements

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def chart(folder: Path) -> Path:
    """Packs the Helm chart with its rules and dashboards, as `helm package` would; returns the archive's path."""
    packed = folder / f"jaxobs-chart-{__version__}.tgz"
    with tempfile.TemporaryDirectory() as built, tarfile.open(packed, "w:gz") as archive:
        generate.write(generate.files("kubernetes"), Path(built))
        archive.add(Path(built) / "deploy" / "helm" / "jaxobs", "jaxobs")
    return packed


def check(wheel: Path, began: str) -> None:
    """Installs the wheel alone into an empty environment, uses it there, and writes what was installed.

    Raises:
      SystemExit: something of it does not work.
    """
    with tempfile.TemporaryDirectory() as folder:
        _run([sys.executable, "-m", "venv", folder], folder)
        bin_ = Path(folder) / "bin"
        _run([bin_ / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], folder)
        imported = _run([bin_ / "python", "-c", "import jaxobs; print(jaxobs.__version__, jaxobs.__file__)"], folder)
        _expect(imported.split()[0] == __version__ and folder in imported, "import jaxobs", imported)
        said = _run([bin_ / "jaxobs", "--version"], folder)
        _expect(__version__ in said.split(), "jaxobs --version", said)
        found = json.loads(_run([bin_ / "jaxobs", "doctor", "--json"], folder, codes=(0, 1)))
        _expect(bool(found), "jaxobs doctor --json", found)
        statements.write(DIST, __version__, bin_ / "python", began)


def _run(command: list[str | Path], folder: str, codes: tuple[int, ...] = (0,)) -> str:
    """Runs a command that knows nothing of this checkout; returns its standard output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAX", "XLA"))}
    done = subprocess.run(command, cwd=folder, env=kept, stdout=subprocess.PIPE, text=True, check=False)
    _expect(done.returncode in codes, " ".join(map(str, command)), f"exit code {done.returncode}")
    return done.stdout


def _expect(holds: bool, what: str, otherwise: object) -> None:
    if not holds:
        raise SystemExit(f"release: {what}: {otherwise}")


def main() -> int:
    """Builds and checks everything; returns the exit code."""
    began = statements.now()
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], check=True)
    chart(DIST)
    (wheel,) = DIST.glob("*.whl")
    names = {path.name for path in DIST.iterdir()}
    wanted = {wheel.name, f"jaxobs-{__version__}.tar.gz", f"jaxobs-chart-{__version__}.tgz"}
    _expect(names == wanted and wheel.name.startswith(f"jaxobs-{__version__}-"), "dist", names)
    check(wheel, began)
    names = {path.name for path in DIST.iterdir()}
    print("release: checked in an empty environment:", *sorted(names), sep="\n  dist/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
