"""`jaxobs cache warm`: what one process recorded is compiled by a second, and found on the first call by a third."""

import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.run_programs import environment, events, programs

from jaxobs.base.errors import JaxobsError, SettingError
from jaxobs.compile_cache.warming import finding, plan

DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
STORED = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}

MODEL = programs(__file__)["model"]

SCRIPT = pathlib.Path(__file__).with_name("warmed_script.txt").read_text(encoding="utf-8")


def jaxobs(folder: pathlib.Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command, variables = [os.path.join(sysconfig.get_path("scripts"), "jaxobs"), *arguments], DEVICES | variables
    return subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True, timeout=120
    )


def run_script(folder: pathlib.Path, log: str, **variables: str) -> list[tuple[str, str]]:
    result = jaxobs(folder, "run", "--port", "0", "--event-log", log, "script.py", **variables)
    assert result.returncode == 0, result.stderr
    found = events(folder / log, "compilation")
    return [(each["function"], each["cache"]) for each in found if not each["eager"]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "model.py").write_text(textwrap.dedent(MODEL))
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    assert {cache for _, cache in run_script(folder, "events.jsonl")} == {"disabled"}
    return folder


@pytest.mark.slow
def test_a_warmed_deployment_compiles_nothing(recorded: pathlib.Path) -> None:
    like = ("--like", "train_step=example_arguments")
    warm = ("cache", "warm", "events.jsonl", "--script", "script.py", "--cache-dir", "cache", *like)
    first = jaxobs(recorded, *warm, OWN_LOG="own.jsonl")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "the model is imported" not in first.stdout
    assert not (recorded / "own.jsonl").exists()
    for said in (
        "9 of 10 signatures are in", "9 compiled, 0 were there", "exactly the same path, `cache`",
        "__main__.make.<locals>.made: `__main__.make` creates it when called",
        'jaxobs.warmup(made, "events.jsonl")',
    ):  # fmt: skip
        assert said in first.stdout

    run = run_script(recorded, "hot.jsonl", JAX_COMPILATION_CACHE_DIR="cache", **STORED)
    assert [function for function, cache in run if cache != "hit"] == ["__main__.make.<locals>.made"]
    assert len(run) == 10

    second = jaxobs(recorded, *warm, "--json", "--function", "model.*", "--function", "train_step")
    assert second.returncode == 0, second.stderr
    told = json.loads(second.stdout)
    assert {(each["function"], each["cache"], each["warmed"]) for each in told["signatures"]} == {
        (name, "hit", True) for name in ("model.predict", "model.plain", "__main__.train_step")
    }


def test_what_the_log_cannot_hold_is_told(recorded: pathlib.Path) -> None:
    names = ("--function", "train_step", "--function", "sample")
    result = jaxobs(recorded, "cache", "warm", "events.jsonl", "--dry-run", *names)
    assert result.returncode == 1
    assert "the model is imported" not in result.stdout + result.stderr
    for said in (
        "argument `0`: in the metadata of `flax.training.train_state.TrainState`, the function __main__",
        "--like train_step=MAKER", "1 of 2 signatures can be compiled, judging by the log alone.",
    ):  # fmt: skip
        assert said in result.stdout


@pytest.mark.slow
def test_usage(recorded: pathlib.Path) -> None:
    for arguments, message in (
        ((), "Use --cache-dir DIR, or set JAX_COMPILATION_CACHE_DIR"),
        (("--cache-dir", "c", "--function", "nobody"), "no compilation of `nobody`. It has: __main__.Trainer"),
        (("--cache-dir", "c"), "with --script FILE or --module MODULE: it is imported"),
        (("--cache-dir", "c"), "According to the log: --script "),
        (("--cache-dir", "c", "--script", "gone.py"), "The script gone.py cannot be read: No such file"),
        (("--like", "train_step"), "`--like` is 'train_step', which is not of the form NAME=[MODULE:]MAKER"),
    ):
        result = jaxobs(recorded, "cache", "warm", "events.jsonl", *arguments)
        assert result.returncode == 2, result.stdout
        assert message in result.stderr


def entry(module: str, qualname: str, **fields: Any) -> dict[str, Any]:
    signature = {
        "version": 1, "module": module, "qualname": qualname, "platform": "cpu", "options": {},
        "nodes": [{"shape": [3], "dtype": "float32"}], "shardings": [], "args": [0], "kwargs": {},
    }  # fmt: skip
    return {
        "event": "compilation", "function": f"{module}.{qualname}", "phases": {"compile": 1.0}, "cache": "miss",
        "signature": signature | fields,
    }  # fmt: skip


def logged(folder: pathlib.Path, *entries: dict[str, Any]) -> pathlib.Path:
    log = folder / "made.jsonl"
    log.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return log


def planned(folder: pathlib.Path, *entries: dict[str, Any], **options: Any) -> plan.Plan:
    """Returns the plan for a log with these compilations, with what keeps arguments from being made."""
    given = {"names": (), "modules": (), "script": None, "makers": {}} | options
    work = plan.make(logged(folder, *entries), **given)
    for item in work.items:
        try:
            if item.task is not None:
                item.task.arguments()
        except JaxobsError as error:
            item.why_not = str(error)
    return work


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A folder to import from, which nothing remembers, with a library, a program, and what cannot be imported."""
    for name, text in (("library", LIBRARY), ("program", PROGRAM), ("raises", "raise SystemExit(3)")):
        (tmp_path / f"{name}_of_test.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    known = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.endswith("_of_test") or name == finding.MAIN:
            del sys.modules[name]


LIBRARY = programs(__file__)["library"]


def test_functions_are_found(folder: pathlib.Path) -> None:
    """By their name, in classes, and where an attribute of another name is jitted from them; equal records once."""
    names = ("jitted", "Trainer.step", "Trainer.Inner.step", "twice")
    entries = [entry("library_of_test", name, started="/here/train.py") for name in names]
    entries.append(entry("library_of_test", "jitted", started="/there/serve.py"))
    work = planned(folder, *entries, modules=["library_of_test"])
    assert [(item.function.partition(".")[2], item.why_not) for item in work.items] == [
        ("jitted", None), ("Trainer.step", None), ("Trainer.Inner.step", None), ("twice", None), ("twice", None),
    ]  # fmt: skip
    assert [item.recorded.times for item in work.items] == [2, 1, 1, 1, 1]
    library = sys.modules["library_of_test"]
    assert [item.task.fun for item in work.items if item.task] == [
        library.jitted, library.Trainer.step, library.Trainer.Inner.step, library.donating, library.keeping,
    ]  # fmt: skip


def of_jitted(**fields: Any) -> dict[str, Any]:
    return entry("library_of_test", "jitted", **fields)


def placed(*devices: int) -> dict[str, Any]:
    return {"platform": "cpu", "devices": [devices]}


FLOATS = {"shape": [3], "dtype": "float32"}
REASONS = [
    (entry("library_of_test", "unjitted"), "`library_of_test.unjitted` is not jitted there"),
    (entry("library_of_test", "gone"), "`library_of_test.gone` no longer exists"),
    (entry("library_of_test", "Trainer.make.<locals>.<lambda>"), "`library_of_test.Trainer.make` creates it when"),
    (entry("library_of_test", "<lambda>"), "a lambda that is not an attribute of `library_of_test`"),
    (entry("raises_of_test", "f"), "`library_of_test.f` no longer exists"),
    (of_jitted(platform="tpu"), "compiled for `tpu`, but this machine runs on `cpu`"),
    (of_jitted(version=0), "version 0"),
    (of_jitted(args=[7]), "damaged"),
    (of_jitted(default_device=placed(64, 1)), "no cpu:64"),
    (of_jitted(default_device=placed(0, 10**12)), "more than 65,536 devices"),
    (of_jitted(args=[-1]), "damaged"),
    (of_jitted(shardings=[{"opaque": "x"}], nodes=[FLOATS | {"sharding": 0}]), "cannot be recreated"),
]


def test_why_not_is_told(folder: pathlib.Path) -> None:
    given = [each for each, _ in REASONS]
    work = planned(folder, *given, of_jitted(), modules=["library_of_test"])
    *reasons, last = [item.why_not for item in sorted(work.items, key=lambda item: item.why_not is None)]
    assert last is None
    assert len(reasons) == len(REASONS)
    for _, expected in REASONS:
        assert any(expected in str(reason) for reason in reasons), (expected, reasons)


def test_a_script_is_loaded_without_its_main_part(folder: pathlib.Path) -> None:
    """Types and functions of `__main__` are those of the loaded script; --script and --module say where else."""
    script = folder / "guarded_of_test.py"
    script.write_text(
        textwrap.dedent("""
        import collections, jax
        Pair = collections.namedtuple("Pair", "a b")
        f = jax.jit(lambda pair, kind: pair.a)
        f.__wrapped__.__qualname__ = "f"
        if __name__ == "__main__":
            raise RuntimeError("it runs")
        """)
    )
    nodes = [FLOATS, {"node": "__main__:Pair", "children": [0, 0]}, {"static": {"import": "__main__:Pair"}}]
    recorded = entry("__main__", "f", nodes=nodes, args=[1, 2], started=str(script))
    (item,) = planned(folder, recorded, script=str(script)).items
    assert item.why_not is None
    assert item.task is not None
    pair, kind = item.task.arguments().args
    assert type(pair) is kind is sys.modules[finding.MAIN].Pair
    elsewhere = entry("__main__", "f", started="/missing/script.py")
    for option in ({"script": str(script)}, {"modules": ["guarded_of_test"]}):
        assert [each.why_not for each in planned(folder, elsewhere, **option).items] == [None]


def test_names_and_lines(folder: pathlib.Path) -> None:
    log = logged(
        folder, of_jitted(), of_jitted() | {"signature": None}, entry("jax.numpy", "sin") | {"eager": True},
        of_jitted(kwargs={"y": 0}) | {"transform": "transpose"}, {"event": "exit", "why": "compilation"},
    )  # fmt: skip
    log.write_text(log.read_text() + '{"event": "compilation", "fun')
    library = ["library_of_test"]
    work = plan.make(log, ["jitted"], library, None, {})
    assert (len(work.items), work.without, work.damage.count) == (1, {"library_of_test.jitted": 1}, 1)
    assert plan.make(log, ["library_*.jit*"], library, None, {}).items
    for names, makers in ((["jit"], {}), ([], {"jit": "example"})):
        with pytest.raises(SettingError, match=r"no compilation of `jit`\. It has: library_of_test.jitted"):
            plan.make(log, names, library, None, makers)
    with pytest.raises(SettingError, match="`--like` names 'gone', which failed: AttributeError"):
        plan.make(log, [], library, None, {"jitted": "gone"})
    with pytest.raises(SettingError, match=r"nowhere.jsonl' cannot be read"):
        plan.make(folder / "nowhere.jsonl", [], library, None, {})


PROGRAM = programs(__file__)["program"]


def with_static(written: Any) -> dict[str, Any]:
    return entry("program_of_test", "f", nodes=[FLOATS, {"static": written}], args=[0, 1])


def evil(mark: pathlib.Path) -> list[Any]:
    call = f"touch {mark}"
    return [
        {"dataclass": "os:system", "fields": {"command": call}},
        {"dataclass": "posix:system", "fields": {"command": call}},
        {"dataclass": "subprocess:Popen", "fields": {"args": call, "shell": True}},
        {"dataclass": "program_of_test:touch", "fields": {"path": str(mark)}},
        {"dataclass": "program_of_test:Config", "fields": {"width": 1, "more": 2}},
        {"dataclass": "program_of_test:Config", "fields": {}}, {"import": "payload_of_test:anything"},
        {"dataclass": "payload_of_test:anything", "fields": {}}, {"import": "program_of_test:touch"},
        {"import": "subprocess:Popen"}, {"import": "program_of_test:subprocess.Popen"}, {"import": "builtins:exec"},
        {"import": "jax.numpy:save"}, {"import": "program_of_test:Kind.mro"}, {"import": ["os", "system"]},
        {"dtype": "O"}, {"dtype": "payload_of_test"}, {"tuple": [{"list": [{"import": "os:system"}]}]},
    ]  # fmt: skip


def test_a_tampered_log_imports_and_calls_nothing(folder: pathlib.Path) -> None:
    """A name in a log reaches real dataclasses, enumerations and types that the program holds, no more."""
    mark = folder / "mark"
    (folder / "payload_of_test.py").write_text(f"import pathlib; pathlib.Path({str(mark)!r}).touch()")
    given = [with_static(each) for each in evil(mark)]
    for node in ("payload_of_test:anything", "subprocess:Popen", "os:system", "program_of_test:Config"):
        given.append(entry("program_of_test", "f", nodes=[FLOATS, {"node": node, "children": [0]}], args=[1]))
    given.append(entry("payload_of_test", "f"))
    given.append(entry("__main__", "f", started=str(folder / "payload_of_test.py")))
    dry = plan.outlined(logged(folder, *given), (), {})
    assert all(item.dry for item in dry.items)
    assert not {"program_of_test", "payload_of_test"} & set(sys.modules)
    work = planned(folder, *given, modules=["program_of_test"])
    assert len(work.items) == len(given)
    # The last function is named `__main__`'s, and is found in the module that stands for it.
    assert [item.recorded.signature for item in work.items if item.why_not is None] == [
        each["signature"] for each in (given[-2], given[-1])
    ]
    assert "payload_of_test" not in sys.modules
    assert not mark.exists()


def test_what_the_program_holds_is_read(folder: pathlib.Path) -> None:
    written = [
        {"dataclass": "program_of_test:Config", "fields": {"width": 3}}, {"import": "program_of_test:Kind.SMALL"},
        {"import": "program_of_test:Config"}, {"import": "program_of_test:activation"},
        {"import": "jax._src.nn.functions:relu"}, {"import": "jax.numpy:float32"}, {"dtype": "bfloat16"},
    ]  # fmt: skip
    work = planned(folder, *map(with_static, written), modules=["program_of_test"])
    assert [item.why_not for item in work.items] == [None] * len(written)
    program = sys.modules["program_of_test"]
    read = [item.task.arguments().args[1] for item in work.items if item.task is not None]
    assert read[:4] == [program.Config(3), program.Kind.SMALL, program.Config, program.activation]


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": [FLOATS, *({"tuple": [n, n]} for n in range(60))], "args": [60]},
        {"nodes": [{"tuple": [0]}]},
        {"nodes": [{"tuple": [1]}, {"tuple": [0]}]},
        {"nodes": [FLOATS, *({"tuple": [n]} for n in range(5000))], "args": [5000]},
        {"nodes": [{"shape": [2**63], "dtype": "float32"}]},
        {"nodes": [{"shape": [-1], "dtype": "float32"}]},
        {"nodes": [{"shape": 3, "dtype": "float32"}]},
        {"nodes": [[0]]},
        {"nodes": {}},
        {"args": {}},
        {"kwargs": []},
        {"options": 3},
    ],
)
def test_a_damaged_signature_is_told(folder: pathlib.Path, fields: dict[str, Any]) -> None:
    """Nodes that are their own parts, trees of 2**60 leaves and sizes that cannot be end soon, with and without JAX."""
    recorded = of_jitted(**fields)
    for work in (
        plan.outlined(logged(folder, recorded), (), {}),
        planned(folder, recorded, modules=["library_of_test"]),
    ):
        assert "damaged" in str(work.items[0].why_not)


def test_a_script_that_would_run_is_not_loaded(folder: pathlib.Path) -> None:
    script = folder / "unguarded_of_test.py"
    script.write_text("raise RuntimeError('it runs')")
    for option, message in (
        ({"script": str(script)}, "loading it would run it"),
        ({"script": str(folder / "missing.py")}, "cannot be read"),
        ({"modules": ["raises_of_test"]}, "`raises_of_test` cannot be imported: SystemExit: 3"),
        ({"modules": ["not_there_of_test"]}, "`not_there_of_test` cannot be imported: ModuleNotFoundError"),
        ({}, "Name the program that has the functions"),
    ):
        with pytest.raises(SettingError, match=message):
            planned(folder, entry("__main__", "f", started=str(script)), **option)
