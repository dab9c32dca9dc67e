"""The wheel has everything, and runs with nothing beside it but JAX and prometheus-client."""

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest
from helpers.paths import ROOT
from prometheus_client.parser import text_string_to_metric_families

from jaxobs.base import links
from jaxobs.ops.monitoring import generate


def run(command: list[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    """A finished command with its output, in an environment that knows nothing of this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAX", "XLA"))}
    return subprocess.run(command, env=kept, capture_output=True, text=True, timeout=240, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    offline = ["--no-isolation"] if importlib.util.find_spec("hatchling") else []
    done = run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, *offline, str(ROOT)])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel, JAX and prometheus-client, and none of the packages for development."""
    return installed(str(wheel), tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(f"jaxobs[cli,demo,grafana] @ {wheel.as_uri()}", tmp_path_factory.mktemp("whole"))


def installed(requirement: str, folder: Path) -> Path:
    """The Python of a new environment with that, and with the JAX of this one."""
    uv, python = Path(sys.executable).with_name("uv"), folder / "bin" / "python"
    make: list[str | Path] = [sys.executable, "-m", "venv", folder]
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet"]
    if uv.exists():
        make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder]
        install = [uv, "pip", "install", "--quiet", "--python", python]
    for step in (make, [*install, requirement, f"jax=={importlib.metadata.version('jax')}"]):
        done = run(step)
        assert done.returncode == 0, done.stderr[-2000:]
    return python


CALLS = """\
from pathlib import Path
import jaxobs
jaxobs.install(port=0, event_log=Path("e.jsonl"), instrument=["a:b"], dispatch_timing="all", meter_provider=None)
jaxobs.start(addr="::1", sample_interval=2, transfers=True, run_id=None, instrument=("a:b",))
handle = jaxobs.serve(0, read_token="secret", max_connections=8)
if handle is not None:
    print(handle.url)
jaxobs.install(evnt_log="e.jsonl")
jaxobs.install(port="zero")
jaxobs.start(dispatch_timing="some")
jaxobs.start(event_log=3)
jaxobs.serve(0, event_log="e.jsonl")
jaxobs.serve(max_connections="many")
"""


@pytest.mark.slow
def test_a_type_checker_knows_the_settings(bare: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(CALLS)
    (tmp_path / "mypy.ini").write_text("[mypy-jax.*,jaxlib.*,numpy.*,prometheus_client.*]\nfollow_imports = skip\n")
    done = run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", bare, "--no-error-summary", program.name],
        cwd=tmp_path,
    )
    assert re.findall(r"^program\.py:(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE) == [
        ("8", "call-arg"), ("9", "arg-type"), ("10", "arg-type"), ("11", "arg-type"), ("12", "call-arg"),
        ("13", "arg-type"),
    ], done.stdout + done.stderr  # fmt: skip


def test_wheel_is_whole(wheel: Path) -> None:
    """Every file of the package is in the wheel, the page's assets and `py.typed` among them, and nothing else."""
    package = ROOT / "jaxobs"
    expected = {
        str(path.relative_to(ROOT))
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    packed = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    assert packed == expected
    assert "jaxobs/py.typed" in packed
    assert {Path(name).suffix for name in packed if "/assets/" in name} >= {".js", ".css", ".html"}


def test_wheel_tells_of_itself(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    texts = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    lines = texts["METADATA"].splitlines()
    required = [
        line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line
    ]
    assert sorted(required) == ["jax>=0.6", "prometheus-client>=0.20"]
    extras = {line.partition(": ")[2] for line in lines if line.startswith("Provides-Extra")}
    assert extras >= {"otel", "nvidia", "grafana", "agent", "mcp", "cli", "all"}
    assert "jaxobs = jaxobs.cli:main" in texts["entry_points.txt"]
    assert texts["LICENSE"] == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "License-Expression: Apache-2.0" in lines
    assert f"Project-URL: Homepage, {links.PROJECT}" in lines
    addresses = [line.rpartition(", ")[2] for line in lines if line.startswith("Project-URL")]
    assert all(address.startswith(links.PROJECT) for address in addresses)


def test_messages_name_no_file_that_pip_leaves_out() -> None:
    """Messages of an installed jaxobs point to commands or addresses; `docs/` and `runbooks/` are in a clone only."""
    folders = re.compile(r"(?<![\w/])(docs|runbooks|alerts|dashboards|deploy|examples|tools|tests|benchmarks)/[\w.-]+")
    wrong = []
    for file in (ROOT / "jaxobs").rglob("*.py"):
        path = str(file.relative_to(ROOT))
        # These write such files, or turn their names into addresses: see test_what_is_generated_leads_somewhere.
        if path.startswith("jaxobs/ops/monitoring/") or path in ("jaxobs/base/links.py", "jaxobs/base/symptoms.py"):
            continue
        wrong += [f"{path}: {found[0]}" for text in messages(file) for found in folders.finditer(text)]
    assert wrong == []


def messages(file: Path) -> list[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documentation = {
        id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    }
    constants = (each for each in ast.walk(tree) if isinstance(each, ast.Constant) and id(each) not in documentation)
    return [each.value for each in constants if isinstance(each.value, str)]


@pytest.mark.slow
def test_every_module_imports_bare(bare: Path) -> None:
    code = """
import importlib, json, pkgutil
import jaxobs
from jaxobs.base.errors import MissingExtraError
failed, imported = {}, 0
for each in pkgutil.walk_packages(jaxobs.__path__, "jaxobs.", onerror=lambda name: None):
    if each.name == "jaxobs.__main__":
        continue
    try:
        importlib.import_module(each.name)
        imported += 1
    except MissingExtraError:
        pass
    except ImportError as error:
        failed[each.name] = str(error)
print(json.dumps([failed, imported, jaxobs.__file__]))
"""
    done = run([bare, "-c", code], cwd=bare.parent)
    assert done.returncode == 0, done.stderr
    failed, imported, file = json.loads(done.stdout.splitlines()[-1])
    assert failed == {}
    assert imported >= 25
    assert not file.startswith(str(ROOT))


def test_top_bare(bare: Path) -> None:
    """The live view of `jaxobs top` names the missing extra; the plain snapshot does without it."""
    ours, theirs = os.openpty()
    command = [bare.with_name("jaxobs"), "top", "http://127.0.0.1:9/"]
    try:
        live = subprocess.run(
            command, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=120,
            env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
    finally:
        os.close(theirs)
        os.close(ours)
    assert live.returncode == 2, live.stderr
    assert "pip install 'rich>=" in live.stderr
    assert "Traceback" not in live.stderr

    code = """
import subprocess, sys, jaxobs
handle = jaxobs.start(port=0)
import jax
jax.jit(lambda x: x + 1)(1)
done = subprocess.run([sys.argv[1], "top", handle.url], capture_output=True, text=True)
print(done.stdout, done.stderr, done.returncode)
"""
    plain = run([bare, "-c", code, str(bare.with_name("jaxobs"))])
    assert plain.stdout.endswith(" 0\n") and "<lambda>" in plain.stdout, plain.stdout + plain.stderr


COMMANDS = (
    *("run", "demo", "top", "explain", "report", "compare", "generate", "cache"),
    *("cache inspect", "cache verify", "cache warm"),
)


def test_each_command_has_its_help_bare(bare: Path) -> None:
    """A command that needs an extra has one too, and names the extra when it runs."""
    code = """
import contextlib, io, json, sys
from jaxobs.cli import main
told = {}
for command in ("", *sys.argv[1:]):
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    told[command] = said.getvalue()
print(json.dumps(told))
"""
    done = run([bare, "-c", code, *COMMANDS])
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [command for command in COMMANDS if f"jaxobs {command}" not in told[command]] == []
    assert [command for command in COMMANDS if command.partition(" ")[0] not in told[""]] == []
    demo = run([bare.with_name("jaxobs"), "demo", "--once"])
    assert demo.returncode == 2, demo.stdout + demo.stderr
    assert "pip install 'flax>=" in demo.stderr


@pytest.fixture(scope="module")
def generated(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    done = run([whole.with_name("jaxobs"), "generate", "all", "--out", folder / "out"], cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out"


@pytest.mark.slow
def test_everything_is_generated_without_a_clone(generated: Path) -> None:
    files = [each for each in generated.rglob("*") if each.is_file()]
    written = {str(file.relative_to(generated)): file.read_bytes() for file in files}
    assert {name.partition("/")[0] for name in written} == {"alerts", "dashboards", "deploy", "docs", "runbooks"}
    assert written == {path: text.encode() for path, text in generate.files("all").items() if "#" not in path}


@pytest.mark.slow
def test_what_is_generated_leads_somewhere(generated: Path) -> None:
    """Links between generated pages hold without the repository; all others are addresses of pages that it has."""
    wrong = []
    for page in generated.rglob("*.md"):
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            ours = link.startswith(links.page_url(""))
            if not ours and "://" in link:
                continue
            target = ROOT / link.removeprefix(links.page_url("")) if ours else page.parent / link
            if not target.exists():
                wrong.append(f"{page.name}: {link}")
    assert wrong == []


def test_a_run_is_reported_without_a_clone(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import jax\n\n@jax.jit\ndef twice(x): return 2 * x\n\nprint(twice(1))\n")
    jaxobs = bare.with_name("jaxobs")
    files = ["--event-log", "events.jsonl", "--metrics-file", "metrics.prom"]
    done = run([jaxobs, "run", "--port", "0", *files, "script.py"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    families = text_string_to_metric_families((tmp_path / "metrics.prom").read_text())
    compilations = [sample for family in families if family.name == "jax_compilations" for sample in family.samples]
    assert [(sample.labels, sample.value) for sample in compilations] == [
        ({"function": "__main__.twice", "cause": "first_call", "cache": "disabled"}, 1.0)
    ]
    done = run([jaxobs, "report", "events.jsonl"], cwd=tmp_path)
    assert done.returncode == 0 and "1 compilation" in done.stdout, done.stdout + done.stderr
    page = (tmp_path / "events.html").read_text(encoding="utf-8")
    assert "__main__.twice" in page and "<style" in page and "<script" in page
    done = run([jaxobs, "explain", "events.jsonl"], cwd=tmp_path)
    assert done.returncode == 0 and " twice " in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_the_demo_starts_and_stops_without_a_clone(whole: Path, tmp_path: Path) -> None:
    command = [whole, "-u", "-m", "jaxobs", "demo", "--port", "0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAX", "XLA"))}
    with subprocess.Popen(command, cwd=tmp_path, env=kept, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        try:
            address = next(found[0] for line in demo.stdout if (found := re.search(r"http://[\d.:]+/", line)))
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"jaxobs" in answer.read()
        finally:
            demo.send_signal(signal.SIGTERM)
        demo.stdout.read()
        assert demo.wait(timeout=120) == 128 + signal.SIGTERM
