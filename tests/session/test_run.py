"""`jaxobs run`: what a script does, prints and dies of is what it does without jaxobs."""

import compileall
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import types
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from helpers.paths import ROOT
from helpers.run_programs import events, programs

import jaxobs
from jaxobs.instruments import instrumentation
from tools.ports import free_port

PLAIN = (sys.executable,)
OBSERVED = (sys.executable, "-m", "jaxobs", "run", "--port", "0")
INSTALLED = (sys.executable, "{folder}/bin/jaxobs", "run", "--port", "0")
ADDRESS = re.compile("at 0x[0-9a-f]+")
FILES = ("--event-log", "events.jsonl", "--metrics-file", "metrics.prom")
RunMain = Callable[..., dict[str, float]]
ENTRY_POINT = "import sys\nfrom jaxobs.cli import main\nsys.exit(main())\n"


def environment(**more: str) -> dict[str, str]:
    """The tests' own, with jaxobs to be found from any directory."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **more}


def result(command: tuple[str, ...], folder: Path, arguments: list[str], **options: object) -> tuple[str, str, int]:
    """Output, error output and return code of a run in `folder`."""
    words = [word.format(folder=folder.parent) for word in command]
    env = environment(**options.pop("env", {}))  # type: ignore[arg-type]
    done = subprocess.run(
        [*words, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120, **options
    )  # type: ignore[call-overload]
    return ADDRESS.sub("at 0x", done.stdout), ADDRESS.sub("at 0x", done.stderr), done.returncode


def check_same(folder: Path, arguments: list[str], launcher: tuple[str, ...] = OBSERVED, **options: object) -> None:
    """The run with and without jaxobs is the same to the letter."""
    plain = result(PLAIN, folder, arguments, **options)
    assert result(launcher, folder, arguments, **options) == plain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "jaxobs").write_text(ENTRY_POINT)
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    return scripts


SCRIPTS = dict(
    part.split("\n", 1)
    for part in Path(__file__).with_name("hostile_scripts.txt").read_text(encoding="utf-8").split("=== ")[1:]
)
"""Scripts by what is hostile in them."""
ARGUMENTS = {"its own argument parser": ["--port", "no number"]}
INPUT = {"input": "jaxobs\nand more\n"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_as_without_jaxobs(name: str, folder: Path) -> None:
    """Output, error output and return code of a hostile script are the same to the letter."""
    (folder / "script.py").write_text(SCRIPTS[name])
    arguments = ["script.py", *ARGUMENTS.get(name, ["a", "--b", "--", "-m"])]
    plain = result(PLAIN, folder, arguments, input=INPUT.get(name))
    (folder / "script.py").write_text(SCRIPTS[name])  # it may have deleted itself
    assert result(OBSERVED, folder, arguments, input=INPUT.get(name)) == plain


@pytest.mark.parametrize(
    ("name", "disabled"),
    [("what it sees of itself", ""), ("what it sees of itself", "1"), ("an error", "1"), ("a hook that fails", "")],
)
def test_the_installed_program_does_as_the_module(name: str, disabled: str, folder: Path) -> None:
    """Launched as `jaxobs`, and when disabled, the script is as without jaxobs too."""
    (folder / "script.py").write_text(SCRIPTS[name])
    check_same(folder, ["script.py", "a"], INSTALLED, env={"JAXOBS_DISABLED": disabled})


@pytest.fixture
def package(folder: Path) -> Path:
    """A folder with a package, modules, a directory, a zip file and a compiled file to run."""
    show = "import sys\nprint(__name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, sys.path[0])\n"
    fail = show + "def f():\n    1 / 0\nf()\n"
    for name in ("package", "plain", "broken"):
        (folder / name).mkdir()
    (folder / "package" / "__init__.py").write_text("import sys; print('init', sys.argv)\n")
    (folder / "package" / "__main__.py").write_text(fail)
    (folder / "package" / "part.py").write_text(fail)
    (folder / "package" / "leaves.py").write_text(show + "sys.exit(3)\n")
    (folder / "package" / "interrupted.py").write_text("raise KeyboardInterrupt\n")
    (folder / "plain" / "__init__.py").write_text("")
    (folder / "broken" / "__init__.py").write_text("1 / 0\n")
    (folder / "syntax.py").write_text("x = (\n")
    (folder / "program").mkdir()
    (folder / "program" / "__main__.py").write_text(fail)
    (folder / "empty").mkdir()
    with zipfile.ZipFile(folder / "program.zip", "w") as archive:
        archive.writestr("__main__.py", "import helper\n" + fail)
        archive.writestr("helper.py", "print('helper')\n")
    (folder / "once.py").write_text(fail)
    compileall.compile_file(str(folder / "once.py"), quiet=1, legacy=True)
    (folder / "latin.py").write_bytes("# -*- coding: latin-1 -*-\nprint('caf\xe9')\n1 / 0\n".encode("latin-1"))
    (folder / "link.py").symlink_to("package/leaves.py")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "package"], ["-m", "package.part"], ["-m", "package.leaves", "-m", "--", "x"], ["-mpackage.leaves"],
        ["-m", "package.interrupted"], ["-m", "plain"], ["-m", "broken"], ["-m", "broken.part"], ["-m", "syntax"],
        ["-m", "nowhere"], ["-m", "package.nowhere"], ["-m", "package.part.py"], ["-m", "json.tool", "--help"],
        ["program", "x"], ["program.zip", "x"], ["empty"], ["nowhere.py"], ["./sub/../nowhere.py"], ["once.pyc"],
        ["latin.py"], ["link.py"], ["./package/leaves.py"], ["."], ["./program"], ["program/"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_modules_directories_and_archives_are_as_without_jaxobs(arguments: list[str], package: Path) -> None:
    """All that `python` can run runs the same, and what it cannot run fails with the same words."""
    check_same(package, arguments)


@pytest.mark.parametrize("flags", [["-P"], ["-O"], ["-W", "error"], ["-I"], ["-X", "dev"]], ids=" ".join)
def test_flags_of_the_interpreter_hold(flags: list[str], folder: Path) -> None:
    source = "import sys\nprint(sys.path[:1], __debug__, sys.warnoptions)\nimport warnings; warnings.warn('w')"
    (folder / "script.py").write_text(source)
    if flags == ["-I"]:  # isolated mode looks neither at PYTHONPATH nor at the current directory
        (folder / "paths.py").write_text("import sys; print(*sys.path, sep='\\n')")
        if str(ROOT) not in result((sys.executable, "-I"), folder, ["paths.py"])[0].split("\n"):
            pytest.skip("jaxobs is not installed, and isolated mode finds nothing else")
    plain = result((sys.executable, *flags), folder, ["script.py"])
    assert result((sys.executable, *flags, *OBSERVED[1:]), folder, ["script.py"]) == plain


@contextlib.contextmanager
def running(folder: Path, launcher: Sequence[str], *options: str) -> Iterator[Any]:
    """A process that runs the script, with pipes, ended with the test."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [*launcher, *options, "script.py"]
    with subprocess.Popen(command, cwd=folder, env=environment(), text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_reader_that_left_is_as_without_jaxobs(folder: Path) -> None:
    """A script whose output nobody reads ends with the same message and code."""
    (folder / "script.py").write_text("for i in range(100_000): print(i)\n")
    ends = []
    for launcher in (PLAIN, OBSERVED):
        with running(folder, launcher) as process:
            process.stdout.readline()
            process.stdout.close()
            ends.append((process.stderr.read(), process.wait(120)))
    assert ends[1] == ends[0]


def test_a_script_from_a_pipe(folder: Path) -> None:
    """A file that can be read but once is read once."""
    command = f"{shlex.join(OBSERVED)} <(echo 'print(40 + 2)')"
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("42\n", "", 0)


FROM_STDIN = [
    "what it sees of itself", "a docstring", "exit with a number", "an error", "an error of an import",
    "a hook of its own", "the last error at exit", "a syntax error", "a late syntax error", "warnings", "a fork",
]  # fmt: skip


@pytest.mark.parametrize("name", FROM_STDIN)
def test_a_program_from_standard_input_is_as_without_jaxobs(name: str, folder: Path) -> None:
    """`jaxobs run -` is `python -` to the letter."""
    source = SCRIPTS[name].replace("os.path.samefile(__file__, sys.argv[0])", "__file__")
    source = source.replace("__loader__.name, __loader__.path, ", "")
    check_same(folder, ["-", "a", "--b", "-m"], input=source)


@pytest.mark.parametrize(
    "source",
    ["", "print(input())", "print('no end')", "\ufeffprint(1)", "x=3\r\nprint(x)"],
    ids=["nothing", "input at the end", "no new line", "a mark of order", "other new lines"],
)  # fmt: skip
def test_odd_programs_from_standard_input(source: str, folder: Path) -> None:
    check_same(folder, ["-"], input=source)


def test_what_a_program_from_standard_input_compiles_is_known(folder: Path) -> None:
    """Functions of it can be instrumented, and lines are told."""
    source = "import jax\ndef step(x): return x + 1\nstep = jax.jit(step)\nstep(1)\nstep(2)\n"
    assert observed(folder, ["-"], "__main__:step", input=source) == (("", "", 0), {"__main__.step": 2.0})
    assert "<stdin>:4" in [event["call_site"] for event in events(folder / "events.jsonl", "compilation")]


def test_a_terminal_is_the_programs_after_its_end(folder: Path) -> None:
    """Typed up to Control-D; then the program may ask."""
    main, terminal = os.openpty()
    process = subprocess.Popen(
        [*OBSERVED, "-"], cwd=folder, env=environment(), stdin=terminal, stdout=subprocess.PIPE, text=True
    )
    os.close(terminal)
    os.write(main, b"print('asks', flush=True)\nprint('got', input())\n\x04")
    assert process.stdout is not None and process.stdout.readline() == "asks\n"
    os.write(main, b"an answer\n")
    assert process.communicate(timeout=60)[0] == "got an answer\n"
    os.close(main)


def test_absl_finds_the_main_module(folder: Path) -> None:
    """absl's flags and `app.run`, in use all over Google's JAX code, see the script."""
    pytest.importorskip("absl")
    (folder / "script.py").write_text(
        "from absl import app, flags\nflags.DEFINE_integer('steps', 1, 'how many')\n"
        "def main(argv):\n    print(argv, flags.FLAGS.steps)\n    return 4\napp.run(main)\n"
    )
    check_same(folder, ["script.py", "--steps", "3"])
    check_same(folder, ["script.py", "--help"])
    check_same(folder, ["script.py", "--no_such_flag"])


# ------------------------------------------------------------------------------------------------- observation

TRAIN = programs(__file__)["train"]


def train(folder: Path, before: str = "", after: str = "") -> Path:
    """Writes a training script that does `before` ahead of importing JAX and `after` at the end."""
    path = folder / "train.py"
    path.write_text(TRAIN.format(before=before, after=textwrap.indent(textwrap.dedent(after), "    ")))
    return path


def observed(
    folder: Path, arguments: list[str], *instrument: str, **options: object
) -> tuple[tuple[str, str, int], dict[str, float]]:
    """How a run ended, with functions instrumented, and the calls of each that its metrics file has."""
    flags = [word for each in instrument for word in ("--instrument", each)]
    outcome = result((*OBSERVED, *FILES, *flags), folder, arguments, **options)
    return outcome, calls(folder / "metrics.prom")


def calls(metrics: Path) -> dict[str, float]:
    """The calls of each instrumented function in a metrics file."""
    found = re.findall(r'^jax_function_calls_total\{function="(.*)"\} (.*)$', metrics.read_text(), re.MULTILINE)
    return {function: float(value) for function, value in found}


def test_a_script_is_observed_from_its_own_import_of_jax_to_its_last_call(folder: Path) -> None:
    """Variables set ahead of importing JAX count; log and metrics have what threads and exit handlers do last."""
    after = """
        import atexit, threading, time
        atexit.register(train_step, w, w)
        threading.Thread(target=lambda: (time.sleep(0.3), train_step(w, w))).start()
        print(w.dtype)
        """
    before = "def early(): pass\nprint('jax' in sys.modules); os.environ['JAX_ENABLE_X64'] = '1'"
    train(folder, before, after)
    asked = ("__main__:early", "__main__:train_step", "train:evaluate", "train:Trainer.step", "train:Trainer.double")
    outcome, counted = observed(folder, ["train.py"], *asked)
    assert outcome == ("False\nfloat64\n", "", 0)
    assert {name.removeprefix("__main__."): number for name, number in counted.items()} == {
        "early": 0.0, "train_step": 13.0, "loss": 1.0, "Trainer.step": 1.0, "Trainer.double": 1.0,
    }  # fmt: skip
    compiled = [event["function"] for event in events(folder / "events.jsonl", "compilation")]
    assert compiled.count("__main__.train_step") == 1
    last = events(folder / "events.jsonl")[-1]
    assert (last["event"], last["reason"], last["code"]) == ("exit", "normal", 0)


def test_functions_of_imported_modules_are_instrumented(folder: Path) -> None:
    """A function is replaced when its module has been imported, before anybody can take it from there."""
    train(folder)
    source = "from train import train_step, jnp\nfor _ in range(3): train_step(jnp.ones(2), 1.0)\n"
    (folder / "script.py").write_text(source)
    assert observed(folder, ["script.py"], "train:train_step") == (("", "", 0), {"train.train_step": 3.0})


def test_functions_of_a_module_run_by_name_are_instrumented(folder: Path) -> None:
    """`-m` runs the module as main, under either name of it."""
    train(folder, after="1 / 0")
    plain = result(PLAIN, folder, ["-m", "train"])
    assert observed(folder, ["-m", "train"], "train:train_step", "__main__:evaluate") == (
        plain, {"__main__.train_step": 11.0, "__main__.loss": 1.0},
    )  # fmt: skip


def test_instrumenting_the_script_leaves_no_trace_in_it(folder: Path) -> None:
    """Line numbers, source, names and tracebacks of an instrumented script are what they were."""
    (folder / "script.py").write_text(
        textwrap.dedent("""
        import functools, inspect, sys, traceback
        import jax
        def keep(f):
            print(f.__code__.co_firstlineno, traceback.extract_stack()[-2].lineno)
            return f

        @keep
        @functools.wraps(print)
        def step(x):
            if x:
                return step(x - 1)
            return 1 / x
        if len(sys.argv) > 5:
            step = None
        print(sorted(globals()))
        print(inspect.getsource(keep), sys._getframe().f_lineno)
        step(2)
        """)
    )
    plain = result(PLAIN, folder, ["script.py"])
    assert result((*OBSERVED, "--instrument", "__main__:step"), folder, ["script.py"]) == plain


@pytest.fixture
def run_main(fresh: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunMain]:
    """Runs a source as the main script of this process, with a function of it asked for; returns the calls."""
    monkeypatch.setattr(instrumentation, "_targets", {})
    monkeypatch.syspath_prepend(folder)

    def run(source: str, asked: str = "__main__:step", name: str = "script") -> dict[str, float]:
        main = types.ModuleType("__main__")
        vars(main).update(jax=jax, jnp=jnp)
        monkeypatch.setitem(sys.modules, "__main__", main)
        compile_main = instrumentation.main_compiler([asked], [name])
        jaxobs.install(instrument=[asked])
        compiled = compile_main(source.encode(), "script.py") if compile_main else compile(source, "script.py", "exec")
        with contextlib.suppress(SystemExit):
            exec(compiled, vars(main))
        return {each.name: each.calls for each in jaxobs.snapshot().functions if each.calls is not None}

    yield run
    sys.modules.pop("other", None)


@pytest.mark.parametrize(
    ("source", "counted"),
    [
        ("def step(x): return x + 1\nstep = jax.jit(step)\nstep(1)", {"step": 1.0}),
        ("step = jax.jit(lambda x: x)\nstep(1)\nstep(2)", {"<lambda>": 2.0}),
        ("step: object = jax.jit(jnp.sin)\nstep(1.0)", None),
        ("first, step = jax.jit(jnp.cos), jax.jit(jnp.sin)\nstep(1.0)", None),
        ("from jax.numpy import sin as step\nstep(1.0)", None),
        ("if True:\n    def step(x): return x\n    step(jnp.ones(1))\nelse:\n    step = None", {"step": 1.0}),
        ("def step(x): return x\nif step is None:\n    step = 1\nstep(jnp.ones(1))", {"step": 1.0}),
        ("try:\n    import nowhere\nexcept ImportError:\n    def step(x): return x\n    step(1)", {"step": 1.0}),
        ("if False:\n    pass\nelse:\n    def step(x): return x\n    step(1)", {"step": 1.0}),
        ("try:\n    pass\nfinally:\n    def step(x): return x\n    step(1)", {"step": 1.0}),
        ("for step in (jnp.sin, jnp.cos):\n    pass\nstep(1.0)", None),
        ("with jax.log_compiles(False):\n    def step(x): return x\n    step(1)", {"step": 1.0}),
        ("match 1:\n    case 1:\n        def step(x): return x\n        step(1)", {"step": 1.0}),
        ("def step():\n    step = 1\n    return step\nstep()", {"step": 1.0}),
        ("def make():\n    global step\n    def step(x): return x\n    step = jax.jit(step)\n    step(1)\nmake()",
         {"step": 1.0}),
        ("def make():\n  def inner():\n    global step\n    step = jnp.sin\n  inner()\nmake()\nstep(1.0)", None),
        ("class Maker:\n  def __init__(self):\n    global step\n    step = jnp.sin\nMaker()\nstep(1.0)", None),
        ("globals()['step'] = jnp.sin\nstep(1.0)", None),
        ("exec('def step(x): return x')\nstep(1)", {"step": 1.0}),
        ("from jax.numpy import *\nstep = sin\nstep(1.0)", None),
        ("'A docstring.'\nfrom __future__ import annotations\nexec('def step(x): return x')\n"
         "assert __doc__ == 'A docstring.'\nstep(1)", {"step": 1.0}),
    ],
)  # fmt: skip
def test_however_the_name_is_bound(source: str, counted: dict[str, float] | None, run_main: RunMain) -> None:
    found = run_main(source)
    assert instrumentation.unmet() == []
    if counted is None:
        assert list(found.values()) == [1.0]
    else:
        assert found == {f"__main__.{name}": value for name, value in counted.items()}


@pytest.mark.parametrize("name", ["a syntax error", "a late syntax error", "warnings", "a docstring", "an error"])
def test_a_script_compiled_for_instrumenting_is_as_ever(name: str, folder: Path) -> None:
    """Errors and warnings of compiling are the same and come once."""
    (folder / "script.py").write_text(SCRIPTS[name] + "\ndef step(): pass\n")
    plain = result(PLAIN, folder, ["script.py"])
    out, err, code = result((*OBSERVED, "--instrument", "__main__:step"), folder, ["script.py"])
    assert (out, err[: len(plain[1])], code) == plain
    assert err[len(plain[1]) :].startswith("jaxobs: `__main__:step` was not instrumented: ")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "__main__:tain_step",
            "`__main__` has no function `tain_step`. Did you mean `train_step`? It has: loss, train_step, evaluate.",
        ),
        ("__main__:main", "`__main__` has no function `main`. It has: loss, train_step, evaluate."),
        ("train:Trainer.fit", "`__main__.Trainer` has no function `fit`. It has: double, step."),
        ("trian:train_step", "module `trian` was never imported. Name the module that the program imports."),
        ("__main__:w", "it is not a function but ArrayImpl."),
        ("__main__:Trainer", "it is a class. Name a method, such as __main__:Trainer.__call__."),
    ],
)
def test_a_function_that_never_appeared_is_named(asked: str, said: str, run_main: RunMain, folder: Path) -> None:
    run_main(train(folder).read_text(), asked, "train")
    assert instrumentation.unmet() == [f"`{asked}` was not instrumented: {said}"]


@pytest.mark.parametrize("asked", ["__main__:late", "other:late"])
def test_a_function_that_is_bound_too_late_is_not_said_to_be_missing(
    asked: str, run_main: RunMain, folder: Path
) -> None:
    source = "import jax\ndef make():\n    globals()['late'] = jax.jit(lambda x: x)\n"
    (folder / "other.py").write_text(source)
    run_main(f"{source}import other\nif True:\n    make()\n    other.make()\n    late(1)\n    exit()", asked)
    assert instrumentation.unmet() == [
        f"`{asked}` was not instrumented: it was bound after the last check. "
        "Call `jaxobs.instrument` on it where it is defined."
    ]


@pytest.mark.parametrize(
    ("source", "end"),
    [
        ("import sys; sys.exit(3)", ("normal", None, 3)),
        ("import sys; sys.exit('text')", ("normal", None, 1)),
        ("1 / 0", ("exception", "ZeroDivisionError", 1)),
        ("raise KeyboardInterrupt", ("signal", "SIGINT", 130)),
        ("import os; os.kill(os.getpid(), 15); import time; time.sleep(3600)", ("signal", "SIGTERM", None)),
        ("x = (", ("exception", "SyntaxError", 1)),
    ],
)
def test_the_end_is_told(source: str, end: tuple[str, str | None, int | None], folder: Path) -> None:
    """The last event says how the script ended."""
    (folder / "script.py").write_text(source)
    result((*OBSERVED, "--event-log", "events.jsonl"), folder, ["script.py"])
    last = events(folder / "events.jsonl")[-1]
    assert (last["event"], last["reason"], last["detail"], last["code"]) == ("exit", *end)


def test_children_write_nothing_over_the_parents_files(folder: Path) -> None:
    """Forked and spawned children leave log and metrics to the parent."""
    after = """
        import atexit, multiprocessing
        for method in ("fork", "spawn"):
            process = multiprocessing.get_context(method).Process(target=print, args=(method,))
            process.start()
            process.join()
            assert process.exitcode == 0
        if os.fork() == 0:
            os._exit(atexit._run_exitfuncs() or 0)  # what follows crashes or hangs in JAX
        os.wait()
        """
    train(folder, after=after)
    asked = ("__main__:train_step", "nowhere:f")
    (out, err, code), counted = observed(folder, ["train.py"], *asked, env={"PYTHONWARNINGS": "ignore"})
    assert (out.split(), err.count("nowhere"), err.count("\n"), code) == (["fork", "spawn"], 2, 1, 0)
    assert counted == {"__main__.train_step": 11.0}
    written = events(folder / "events.jsonl")
    assert len({event["pid"] for event in written}) == 1
    assert [event["event"] for event in written].count("exit") == 1


def test_the_address_is_printed_and_a_taken_port_is_told_once(folder: Path) -> None:
    """The endpoint answers; without one the script runs, and the files are written all the same."""
    (folder / "script.py").write_text("import sys; print('ready', flush=True); sys.stdin.read()")
    port = ("--port", str(free_port()))
    with running(folder, OBSERVED, *port) as process:
        line = process.stderr.readline()
        assert re.fullmatch(r"jaxobs: http://127\.0\.0\.1:\d+/\n", line)
        with urllib.request.urlopen(line.split()[1] + "metrics", timeout=120) as answer:
            assert b"jaxobs_" in answer.read()
        out, err, code = result((*OBSERVED, *port, *FILES), folder, ["script.py"], input="")
        assert (out, code, err.count("\n")) == ("ready\n", 0, 1)
        assert port[1] in err
        assert events(folder / "events.jsonl")[-1]["event"] == "exit"
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait(120) == 0


def test_a_stuck_script_still_leaves_its_last_state(folder: Path) -> None:
    """SIGTERM in the midst of a long C call: the last state is written, and the process dies of the signal."""
    # To lock a mutex twice is never interrupted.
    (folder / "script.py").write_text(
        "import ctypes, jax\nlibc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)\n"
        "libc.pthread_mutex_lock(mutex)\nprint('ready', flush=True)\nlibc.pthread_mutex_lock(mutex)\n"
    )
    with running(folder, OBSERVED, *FILES) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == -signal.SIGTERM
    last = events(folder / "events.jsonl")[-1]
    assert (last["event"], last["reason"], last["detail"]) == ("exit", "signal", "SIGTERM")


def test_a_bad_setting_is_a_usage_error(folder: Path) -> None:
    """Flag and variable alike; the script does not start."""
    (folder / "script.py").write_text("print('ran')")
    for flags, env, said in (
        (("--sample-interval", "soon"), {}, "`sample_interval` is 'soon', which is not a valid number."),
        (("--instrument", "a:b c"), {}, "`instrument` is 'a:b c', which is not of the form MODULE:FUNCTION"),
        ((), {"JAXOBS_MAX_EVENTS": "0"}, "`JAXOBS_MAX_EVENTS` is '0', but must be "),
    ):
        out, err, code = result((*OBSERVED, *flags), folder, ["script.py"], env=env)
        assert (out, code) == ("", 2)
        assert err.startswith(f"jaxobs: {said}")
