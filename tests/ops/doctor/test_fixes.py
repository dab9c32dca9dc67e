"""Fixes of the doctor: commands that a shell takes as they are, whatever was read."""

import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from jaxobs.base.errors import JaxobsError
from jaxobs.compile_cache.complaints import Complaint
from jaxobs.ops.doctor import baselines, shell, xla_dumps
from jaxobs.ops.doctor.checks import (
    accelerator_plugins,
    compilation_cache,
    debug_options,
    distributed,
    jax_versions,
    ports,
    silent_cpu,
    xla_flags,
)
from jaxobs.ops.doctor.machine import Finding, Machine, Package
from jaxobs.ops.doctor.probes import NO_ANSWER, Imported, Parsed

HOSTILE = """it's "a b" $(touch {}) `touch {}`; touch {}"""


def machine(folder: Path, settings: Mapping[str, object] | None = None, /, **environment: str) -> Machine:
    made = Machine({"TMPDIR": str(folder), **environment}, folder / "root", folder)
    made.__dict__.update(
        packages=(), imported=Imported("0.10.2", "0.10.2", settings=dict(settings or {})), parsed=Parsed(),
        added_platforms=frozenset(),
    )  # fmt: skip
    return made


def faults(found: list[Finding]) -> list[tuple[str, str, str]]:
    return [(each.severity, each.title, each.fix) for each in found if each.severity != "ok"]


def after(command: str, name: str) -> str:
    """The value of a variable behind a command."""
    done = subprocess.run(["sh", "-c", f'{command}; printf %s "${name}"'], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("value", ["", "a", "--xla_a=1 --xla_b=2", "it's", '"a b"', "$HOME", "`id`", "a\nb", "\\", "!"])
def test_an_export_sets_exactly_what_is_meant(value: str) -> None:
    assert after(shell.export("X", value), "X") == value
    assert shell.export("X;id", value) == shell.unset("X;id") == ""


def test_a_baseline_brings_no_commands_of_its_own(tmp_path: Path) -> None:
    trap = HOSTILE.format(*3 * [tmp_path / "trap"])
    was = {"packages": {"numpy": f'1.0"; touch {tmp_path}/trap; "', "jax": "0.9.0"}, "variables": {"XLA_FLAGS": trap}}
    was["variables"] |= {"JAX_A;touch x": "1", "NCCL_KEY": "<not shown>", "JAX_LONG": "x" * 500}
    now = {"packages": {"numpy": "2.0", "jax": "0.10.2"}, "variables": {}}
    fixes = {each.entity: each.fix for each in baselines.compare(was, now)}
    assert after(fixes["XLA_FLAGS"], "XLA_FLAGS") == trap
    assert (fixes["numpy"], fixes["JAX_A;touch x"]) == ("", "")
    assert fixes["jax"] == 'pip install "jax==0.9.0"'
    assert fixes["JAX_LONG"] == f"export JAX_LONG={'x' * 500}"
    assert "<not shown>" not in fixes["NCCL_KEY"]
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("body", ['{"machine": {}}', '{"machine": {"packages": [1], "variables": {"A": {"b": 1}}}}'])
def test_half_a_baseline_is_none(body: str, tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text(body)
    with pytest.raises(JaxobsError, match="incomplete `machine`"):
        baselines.read(tmp_path / "half.json")


def test_flags_are_split_as_xla_splits_them(tmp_path: Path) -> None:
    """A value in quotes stays in one piece, and in the command."""
    made = machine(tmp_path, XLA_FLAGS='--xla_dump_to="/a b" --xla_no=1')
    made.parsed = Parsed("Unknown flag", ("--xla_no=1",))
    assert made.flags == ['--xla_dump_to="/a b"', "--xla_no=1"]
    [unknown] = [each for each in xla_flags.check(made) if each.severity == "critical"]
    assert after(unknown.fix, "XLA_FLAGS") == '--xla_dump_to="/a b"'


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("/none/flags.txt", "unset XLA_FLAGS"),
        ("xla_gpu_autotune_level=4", 'export XLA_FLAGS="--xla_gpu_autotune_level=4"'),
    ],
)
def test_a_file_of_flags_that_is_not_there_aborts_the_process(value: str, fix: str, tmp_path: Path) -> None:
    [(severity, title, said)] = faults(list(xla_flags.check(machine(tmp_path, XLA_FLAGS=value))))
    assert (severity, "file that cannot be read" in title, said) == ("critical", True, fix)


def test_a_file_of_flags_is_found_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "root" / str(tmp_path)[1:]).mkdir(parents=True)
    (tmp_path / "root" / str(tmp_path)[1:] / "flags.txt").write_text("--xla_a=1\n--xla_b=2\n")
    assert machine(tmp_path, XLA_FLAGS="flags.txt").flags == ["--xla_a=1", "--xla_b=2"]


def test_a_value_that_xla_refuses_and_a_flag_given_twice(tmp_path: Path) -> None:
    """The one is left out, of the others the last one stays."""
    made = machine(tmp_path, XLA_FLAGS="--xla_a=x --xla_b=2")
    made.parsed = Parsed("...", refused=("xla_a",))
    assert faults(list(xla_flags.check(made))) == [
        ("critical", "XLA refuses the value of --xla_a", 'export XLA_FLAGS="--xla_b=2"')
    ]
    twice = machine(tmp_path, XLA_FLAGS="--xla_a=1 --xla_b=2 --xla_a=3")
    assert faults(list(xla_flags.check(twice)))[0][2] == 'export XLA_FLAGS="--xla_b=2 --xla_a=3"'


def test_one_wheel_in_two_places_is_two_wheels(tmp_path: Path) -> None:
    made = machine(tmp_path)
    made.packages = (Package("libtpu", "0.0.20", "/a"), Package("libtpu", "0.0.30", "/b"))
    assert faults(list(accelerator_plugins.check(made)))[0][:2] == ("critical", "libtpu is installed 2 times")
    made.packages = (Package("libtpu", "0.0.20", "/a"), Package("libtpu", "0.0.20", "/a"))
    assert not faults(list(accelerator_plugins.check(made)))


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("cuda, cpu", "export JAX_PLATFORMS=cuda,cpu"), ("CPU", "export JAX_PLATFORMS=cpu"),
        ("nvidia", "unset JAX_PLATFORMS"), ("cpu", None), ("", None),
    ],
)  # fmt: skip
def test_names_of_platforms_are_compared_letter_by_letter(value: str, fix: str | None, tmp_path: Path) -> None:
    found = faults(list(silent_cpu.check(machine(tmp_path, JAX_PLATFORMS=value))))
    assert [said for _, title, said in found if "knows no platform" in title] == ([] if fix is None else [fix])


def test_a_plugin_without_its_device_runs_on_the_cpu(tmp_path: Path) -> None:
    """A container without its GPUs; where the CPU is asked for, all is well."""
    packages = (Package("jax-cuda13-plugin", "0.10.2", "/a"),)
    for environment, count in (({}, 1), ({"JAX_PLATFORMS": "cpu"}, 0)):
        made = machine(tmp_path, **environment)
        made.packages = packages
        assert [each[0] for each in faults(list(silent_cpu.check(made)))] == count * ["warning"]


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("TF_CPP_MAX_VLOG_LEVEL", "4", "warning"), ("TF_CPP_MAX_VLOG_LEVEL", "0", None),
        ("PYTHONTRACEMALLOC", "10", "warning"), ("PYTHONTRACEMALLOC", "0", None), ("NCCL_DEBUG", "info", "info"),
        ("NCCL_DEBUG", "WARN", None), ("TF_CPP_MIN_LOG_LEVEL", "1", None), ("TF_CPP_MIN_LOG_LEVEL", "0", "info"),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "platform", "warning"), ("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc", None),
    ],
)  # fmt: skip
def test_every_level_of_an_option_counts(name: str, value: str, severity: str | None, tmp_path: Path) -> None:
    found = faults(list(debug_options.check(machine(tmp_path, **{name: value}))))
    assert [(each, fix) for each, _, fix in found] == ([] if severity is None else [(severity, f"unset {name}")])


def test_settings_with_a_text(tmp_path: Path) -> None:
    """JAX raises its own level for the modules that are named: that is one option, not two."""
    given = {"jax_debug_log_modules": "jax", "jax_logging_level": "DEBUG", "jax_transfer_guard": "disallow"}
    found = faults(list(debug_options.check(machine(tmp_path, given))))
    assert {fix for _, _, fix in found} == {"unset JAX_DEBUG_LOG_MODULES", "unset JAX_TRANSFER_GUARD"}


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"JAX_NUM_PROCESSES": "0"}, "cannot have 0 processes"),
        ({"JAX_COORDINATOR_ADDRESS": "localhost:99999"}, "no port 99999"),
        ({"JAX_COORDINATOR_ADDRESS": "http://localhost:1"}, "not `host:port`"),
        ({"JAX_COORDINATOR_ADDRESS": "localhost:1", "JAX_NUM_PROCESSES": "4"}, "JAX_PROCESS_ID is not set"),
        ({"JAX_COORDINATOR_ADDRESS": "localhost:1", "JAX_PROCESS_ID": "1"}, "JAX_NUM_PROCESSES is not set"),
        ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1", "JAX_COORDINATOR_ADDRESS": "localhost:1",
          "SLURM_NTASKS": "8", "SLURM_PROCID": "1"}, "JAX_NUM_PROCESSES and SLURM_NTASKS disagree"),
        ({"JAX_NUM_PROCESSES": "8", "JAX_PROCESS_ID": "1", "JAX_COORDINATOR_ADDRESS": "localhost:1",
          "SLURM_NTASKS": "8", "SLURM_PROCID": "1"}, ""),
        ({"JAX_COORDINATOR_ADDRESS": "localhost:1", "SLURM_JOB_ID": "7"}, ""),
    ],
)  # fmt: skip
def test_settings_of_a_job_that_do_not_work(environment: dict[str, str], said: str, tmp_path: Path) -> None:
    """Each as JAX itself fails with it; what a scheduler brings is not missing."""
    found = faults(list(distributed.check(machine(tmp_path, **environment))))
    assert [title for _, title, _ in found if said in title] == [title for _, title, _ in found]
    assert len(found) == bool(said)


def test_what_disables_the_cache_is_what_is_taken_back(tmp_path: Path) -> None:
    given = {"jax_compilation_cache_dir": "/x", "jax_enable_compilation_cache": False}
    [(_, _, fix)] = faults(list(compilation_cache.check(machine(tmp_path, given))))
    assert fix == "unset JAX_ENABLE_COMPILATION_CACHE"


def test_the_fix_of_a_cache_is_a_command_that_works(tmp_path: Path) -> None:
    """Rights are taken away, broken entries go, a name that begins with a tilde means home."""
    place = tmp_path / "a 0.10.2 b"
    place.mkdir(mode=0o700)
    place.chmod(0o777)
    (place / f"jit_f-{'0' * 64}-cache").write_bytes(b"garbage")
    given = {"jax_compilation_cache_dir": str(place), "jax_persistent_cache_min_entry_size_bytes": 2**30}
    made = machine(tmp_path, given)
    found = faults(list(compilation_cache.check(made)))
    assert {title for _, title, _ in found} == {
        "Cache: writable by others", "Cache: broken entries", "Programs of less than 1 GiB are not stored"
    }  # fmt: skip
    for _, title, fix in found:
        if title.startswith("Cache"):
            subprocess.run(["sh", "-c", fix], check=True)
    assert len(faults(list(compilation_cache.check(made)))) == 1
    home = machine(tmp_path, {"jax_compilation_cache_dir": "~/c 0.1"})
    assert [fix for _, _, fix in faults(list(compilation_cache.check(home)))] == [
        'export JAX_COMPILATION_CACHE_DIR="$HOME"/"c 0.1"'
    ]


def test_a_directory_that_cannot_be_made_has_another_one_as_its_fix(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given: dict[str, object] = {"jax_compilation_cache_dir": str(tmp_path / "file" / "cache")}
    [(severity, _, fix)] = faults(list(compilation_cache.check(machine(tmp_path, given))))
    assert (severity, fix) == ("critical", "export JAX_COMPILATION_CACHE_DIR=$HOME/.cache/jax/0.10.2")


def test_a_file_called_jax_hides_the_package(tmp_path: Path) -> None:
    (tmp_path / "jax.py").touch()
    made = machine(tmp_path)
    made.packages = (Package("jax", "0.10.2", "/a"), Package("jaxlib", "0.10.2", "/a"))
    made.imported = Imported(trouble="AttributeError: module 'jax' has no attribute 'config'")
    [(severity, title, fix)] = faults(list(jax_versions.check(made)))
    assert (severity, "file of this directory" in title, fix.startswith("mv ")) == ("critical", True, True)
    subprocess.run(["sh", "-c", fix], check=True)
    assert not (tmp_path / "jax.py").exists()
    made.imported = Imported(trouble=NO_ANSWER)
    [(severity, title, _)] = faults(list(jax_versions.check(made)))
    assert (severity, title) == ("warning", "`import jax` takes very long")


@pytest.mark.parametrize(
    ("address", "said"), [("0.0.0.0", "can read the endpoint"), ("203.0.113.7", "cannot listen on 203.0.113.7")]
)
def test_who_reaches_the_endpoint(address: str, said: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("", 0))
        made = machine(tmp_path, JAXOBS_PORT=str(free.getsockname()[1]), JAXOBS_ADDR=address)
    [(severity, title, _)] = faults(list(ports.check(made)))
    assert (severity, said in title) == ("info", True)


def test_flags_of_two_dumps_are_compared(tmp_path: Path) -> None:
    for name, level, shape in (("a", 3, 4), ("b c", 0, 5)):
        (tmp_path / name).mkdir()
        module = tmp_path / name / "module_0001.jit_f"
        Path(f"{module}.before_optimizations.txt").write_text(f"HloModule jit_f\n f32[{shape}]\n")
        Path(f"{module}.debug_options").write_text(
            f'xla_backend_optimization_level: {level}\nxla_dump_to: "{name}"\nxla_x: A\nxla_x: B\n'
        )
    program, flags = xla_dumps.compare(tmp_path / "a", tmp_path / "b c")
    assert (flags.severity, flags.evidence) == ("info", "xla_backend_optimization_level: 3 -> 0")
    assert subprocess.run(["sh", "-c", program.fix], capture_output=True, check=False).returncode == 1
    assert [each.severity for each in xla_dumps.compare(tmp_path / "a", tmp_path / "a")] == ["ok"]


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        ("not_writable", "chmod u+rwx {}   # unless this job only reads"), ("unreadable", "chmod u+rwx {}"),
        ("no_namespace", "export JAX_COMPILATION_CACHE_DIR={}/jax-0.10.2"),
    ],
)  # fmt: skip
def test_what_a_cache_lacks_is_a_command(kind: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights of its owner, or a place of its own for this version."""
    complaint = Complaint(kind=kind, severity="warning", summary="It is so.", advice="Change it.")
    monkeypatch.setattr("jaxobs.compile_cache.checkup.unusable", lambda path: complaint)
    made = machine(tmp_path, {"jax_compilation_cache_dir": str(tmp_path)})
    [(_, _, said)] = faults(list(compilation_cache.check(made)))
    assert said == fix.replace("{}", str(tmp_path))
    subprocess.run(["sh", "-c", said], check=True)


@pytest.mark.parametrize(("name", "count"), [("lost+found", 0), (".snapshot", 0), ("photos", 1)])
def test_a_new_volume_is_an_empty_cache(name: str, count: int, tmp_path: Path) -> None:
    place = tmp_path / "jax-0.10.2"
    (place / name).mkdir(parents=True)
    place.chmod(0o700)
    made = machine(tmp_path, {"jax_compilation_cache_dir": str(place)})
    assert [title for _, title, _ in faults(list(compilation_cache.check(made)))] == count * ["Cache: not a cache"]
