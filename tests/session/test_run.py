"""`jaxobs run`: what a script does, prints and dies of is what it does without jaxobs."""

from __future__ import annotations

import compileall
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

import jaxobs
from tools.ports import free_port

ROOT = Path(jaxobs.__file__).parents[1]
PLAIN = (sys.executable,)
OBSERVED = (sys.executable, "-m", "jaxobs", "run", "--port", "0")
INSTALLED = (sys.executable, "{folder}/bin/jaxobs", "run", "--port", "0")
ADDRESS = re.compile("at 0x[0-9a-f]+")
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


SCRIPTS = {
    "what it sees of itself": """
        import sys, os
        print({k: v for k, v in globals().items() if k not in ("__loader__", "sys", "os")})
        print(type(__loader__), __loader__.name, __loader__.path, list(globals()))
        print(sys.argv, sys.path[:2], os.path.samefile(__file__, sys.argv[0]))
        import __main__
        print(__main__.__file__, vars(sys.modules["__main__"]) is globals(), __name__, __doc__)
        print(sys.flags, sys.getrecursionlimit(), sys.excepthook is sys.__excepthook__)
        """,
    "a docstring": '''
        """What it does."""
        print(__doc__, __annotations__)
        x: int = 1
        print(__annotations__)
        ''',
    "its own future": """
        def f(x: int) -> str: ...
        print(f.__annotations__)
        """,
    "exit with a number": "import sys; print('out'); sys.exit(3)",
    "exit with nothing": "import sys; sys.exit()",
    "exit with a text": "import sys; print('out'); sys.exit('a text')",
    "exit with true": "import sys; sys.exit(True)",
    "exit with a large number": "import sys; sys.exit(2**40 + 5)",
    "exit with a negative number": "import sys; sys.exit(-1)",
    "exit with an object": "import sys; sys.exit([1, 2])",
    "exit by the site's function": "quit(2)",
    "an exit of its own kind": """
        class Done(SystemExit):
            code = 9
        raise Done
        """,
    "exit while handling": """
        try:
            1 / 0
        except ZeroDivisionError:
            raise SystemExit(4)
        """,
    "at once": "import os; print('lost'); os._exit(5)",
    "an error": """
        def f(x):
            return 1 / x
        print("before")
        f(0)
        """,
    "an error with its cause": """
        def f():
            raise KeyError("inner")
        try:
            f()
        except KeyError as error:
            raise ValueError("outer") from error
        """,
    "a group of errors": "raise ExceptionGroup('several', [ValueError(1), KeyError('k')])",
    "an error with notes": "e = ValueError('v'); e.add_note('a note'); raise e",
    "an error in the midst of a class": """
        class A:
            x = undefined
        """,
    "an error of an import": "import no_such_module_anywhere",
    "an error inside an import": """
        import pathlib
        pathlib.Path("broken.py").write_text("def f():\\n    raise RuntimeError('here')\\nf()\\n")
        import broken
        """,
    "a base exception": "class Odd(BaseException): pass\nraise Odd('odd')",
    "an error of jaxobs": """
        from jaxobs.base.errors import SettingError
        raise SettingError("what the script got wrong")
        """,
    "a broken pipe of its own": "raise BrokenPipeError(32, 'not that of stdout')",
    "a hook of its own": """
        import sys, traceback
        def hook(kind, error, tb):
            print("hook", kind, error, sys.excepthook is hook, sys.exc_info(), error.__traceback__ is tb)
            traceback.print_tb(tb, file=sys.stdout)
            print(sys.last_value is error, sys.last_traceback is tb)
        sys.excepthook = hook
        raise ValueError("seen by the hook")
        """,
    "a hook that fails": """
        import sys
        def hook(kind, error, tb):
            raise KeyError("in the hook")
        sys.excepthook = hook
        raise ValueError("first")
        """,
    "a hook that exits": "import sys\nsys.excepthook = lambda *a: sys.exit(7)\nraise ValueError",
    "no hook": "import sys\ndel sys.excepthook\nraise ValueError('first')",
    "the last error at exit": """
        import atexit, sys, traceback
        def last():
            traceback.print_tb(sys.last_traceback)
            print(repr(sys.last_value), sys.excepthook is sys.__excepthook__)
        atexit.register(last)
        raise ValueError("v")
        """,
    "an error that it prints itself": """
        import logging, traceback
        try:
            1 / 0
        except ZeroDivisionError:
            traceback.print_exc()
            logging.exception("logged")
            logging.getLogger().warning("at line %s", traceback.extract_stack()[-1].lineno)
        """,
    "warnings": """
        import warnings
        warnings.warn("deprecated", DeprecationWarning)
        warnings.warn("for the user")
        print("\\d" is "x")
        def old():
            warnings.warn("old", DeprecationWarning, stacklevel=2)
        old()
        """,
    "a syntax error": "x = (1,\nprint('never'",
    "an indentation error": "if True:\nprint('never')",
    "a late syntax error": "print('never')\nreturn 3",
    "an interrupt": "print('before'); raise KeyboardInterrupt",
    "an interrupt by signal": """
        import os, signal, time
        print("before", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3600)
        """,
    "an interrupt, with exit handlers": """
        import atexit, threading, time
        atexit.register(print, "handler")
        def work():
            time.sleep(0.1)
            print("work")
        threading.Thread(target=work).start()
        raise KeyboardInterrupt
        """,
    "an interrupt it handles": """
        import os, signal, time
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(3600)
        except KeyboardInterrupt:
            print("handled")
        """,
    "killed by the default of SIGTERM": """
        import os, signal, time
        print("before", flush=True)
        print("not flushed")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(3600)
        """,
    "its own handler of SIGTERM": """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *a: sys.exit(12))
        os.kill(os.getpid(), signal.SIGTERM)
        """,
    "SIGTERM ignored": """
        import os, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGTERM)
        print("alive")
        """,
    "killed by SIGKILL": "import os; os.kill(os.getpid(), 9)",
    "exit handlers and threads": """
        import atexit, sys, threading, time
        atexit.register(print, "first registered")
        atexit.register(print, "last registered")
        def work():
            time.sleep(0.2)
            print("work done", threading.current_thread().daemon)
        threading.Thread(target=work).start()
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
        print("main done", [thread.name.partition(" ")[0] for thread in threading.enumerate()])
        """,
    "an exit handler that fails": "import atexit\natexit.register(lambda: 1 / 0)",
    "a thread that fails": """
        import threading
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        """,
    "objects that speak when they go": """
        import atexit
        class Last:
            def __init__(self, name): self.name = name
            def __del__(self): print("gone", self.name)
        one, _two, three = Last("one"), Last("two"), Last("three")
        def f(): return three
        """,
    "pickle, dataclass and source of its own": """
        import dataclasses, inspect, pickle
        @dataclasses.dataclass
        class Point:
            x: int = 1
        print(pickle.loads(pickle.dumps(Point(3))), Point.__module__)
        print(inspect.getsource(Point), inspect.getsourcefile(Point), inspect.getfile(Point))
        """,
    "children of multiprocessing": """
        import multiprocessing, os, sys
        def work(x):
            print("in child", x, __name__, sys.argv[1:], flush=True)
            return x * x
        if __name__ == "__main__":
            for method in ("spawn", "fork", "forkserver"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(method, pool.map(work, [2, 3]), flush=True)
        """,
    "processes that fail and are terminated": """
        import multiprocessing, sys, time
        def fail(): raise ValueError("in child")
        def leave(): sys.exit(6)
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            for target in (fail, leave):
                process = context.Process(target=target, name="child")
                process.start(); process.join()
                print(process.exitcode, flush=True)
            for _ in range(20):
                process = context.Process(target=time.sleep, args=(3600,))
                process.start(); process.terminate(); process.join()
                print(process.exitcode, flush=True)
            time.sleep(1.5)
        """,
    "an executor": """
        from concurrent.futures import ProcessPoolExecutor
        def square(x): return x * x
        if __name__ == "__main__":
            with ProcessPoolExecutor(1) as pool:
                print(list(pool.map(square, range(3))))
        """,
    "a fork": """
        import atexit, os, signal, sys
        atexit.register(lambda: print("exit of", "parent" if os.getpid() == parent else "child", flush=True))
        parent = os.getpid()
        if os.fork() == 0:
            print("child", signal.getsignal(signal.SIGTERM), flush=True)
            sys.exit(8)
        print("parent", os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    "a fork that fails": """
        import os
        if os.fork() == 0:
            raise ValueError("in the child")
        print("parent", os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    "a subprocess": """
        import subprocess, sys
        code = "import signal, sys; print(signal.getsignal(15), 'jaxobs' in sys.modules)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True))
        """,
    "another program in its place": """
        import os, sys
        os.execv(sys.executable, [sys.executable, "-c", "import signal; print(signal.getsignal(15)); 1/0"])
        """,
    "asyncio": """
        import asyncio, os, signal
        async def main():
            loop = asyncio.get_running_loop()
            got = asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR1, got.set)
            loop.add_signal_handler(signal.SIGTERM, print, "asked to end")
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGTERM)
            await got.wait()
            await asyncio.sleep(0.05)
            return 3
        print(asyncio.run(main()))
        asyncio.run(asyncio.sleep(0))
        raise asyncio.CancelledError
        """,
    "asyncio interrupted": """
        import asyncio, os, signal
        async def main():
            asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
            await asyncio.sleep(3600)
        asyncio.run(main())
        """,
    "input": "import sys; print(input('name? '), sys.stdin.read())",
    "its own argument parser": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--port", type=int)
        print(parser.parse_args())
        """,
    "another directory": """
        import os
        os.mkdir("elsewhere"); os.chdir("elsewhere")
        def f(): 1 / 0
        f()
        """,
    "a file deleted under it": "import os\nos.remove(__file__)\ndef f():\n    1 / 0\nf()",
    "output unread": """
        import sys
        sys.stdout.write("x" * 10)
        sys.stdout.close()
        """,
    "no JAX": "import sys; print([m for m in ('jax', 'numpy', 'prometheus_client') if m in sys.modules])",
}
ARGUMENTS = {"its own argument parser": ["--port", "no number"]}
INPUT = {"input": "jaxobs\nand more\n"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_as_without_jaxobs(name: str, folder: Path) -> None:
    """Output, error output and return code of a hostile script are the same to the letter."""
    (folder / "script.py").write_text(textwrap.dedent(SCRIPTS[name]).lstrip("\n"))
    outcomes = []
    for launcher in (PLAIN, OBSERVED):
        arguments = ["script.py", *ARGUMENTS.get(name, ["a", "--b", "--", "-m"])]
        outcomes.append(result(launcher, folder, arguments, input=INPUT.get(name)))
        if (folder / "elsewhere").exists():
            (folder / "elsewhere").rmdir()
        (folder / "script.py").write_text(textwrap.dedent(SCRIPTS[name]).lstrip("\n"))
    assert outcomes[1] == outcomes[0]


@pytest.mark.parametrize("name", ["what it sees of itself", "an error", "a hook that fails"])
@pytest.mark.parametrize("disabled", ["", "1"])
def test_the_installed_program_does_as_the_module(name: str, disabled: str, folder: Path) -> None:
    """Launched as `jaxobs`, and when disabled, the script is as without jaxobs too."""
    (folder / "script.py").write_text(textwrap.dedent(SCRIPTS[name]).lstrip("\n"))
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
    # Isolated mode looks neither at PYTHONPATH nor at the current directory.
    source = "import sys\nprint(sys.path[:1], __debug__, sys.warnoptions)\nimport warnings; warnings.warn('w')"
    (folder / "script.py").write_text(source)
    if flags == ["-I"] and ROOT not in map(Path, isolated_path()):
        pytest.skip("jaxobs is not installed, and isolated mode finds nothing else")
    plain = result((sys.executable, *flags), folder, ["script.py"])
    assert result((sys.executable, *flags, *OBSERVED[1:]), folder, ["script.py"]) == plain


def isolated_path() -> list[str]:
    code = "import sys; print(*sys.path, sep='\\n')"
    return subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True).stdout.split("\n")


def test_a_reader_that_left_is_as_without_jaxobs(folder: Path) -> None:
    """A script whose output nobody reads ends with the same message and code."""
    (folder / "script.py").write_text("for i in range(100_000): print(i)\n")
    ends = []
    for launcher in (PLAIN, OBSERVED):
        process = subprocess.Popen(
            [*launcher, "script.py"], cwd=folder, env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        ends.append((process.stderr.read(), process.wait(120)))
        process.stderr.close()
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
    source = textwrap.dedent(SCRIPTS[name]).lstrip("\n").replace("os.path.samefile(__file__, sys.argv[0])", "__file__")
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
    command = (*OBSERVED, "--event-log", "events.jsonl", "--metrics-file", "m.prom", "--instrument", "__main__:step")
    source = "import jax\ndef step(x): return x + 1\nstep = jax.jit(step)\nstep(1)\nstep(2)\n"
    assert result(command, folder, ["-"], input=source) == ("", "", 0)
    assert calls(folder / "m.prom") == {"__main__.step": 2.0}
    sites = [event["call_site"] for event in events(folder / "events.jsonl") if event["event"] == "compilation"]
    assert "<stdin>:4" in sites


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

TRAIN = """
import os, sys
{before}
import jax, jax.numpy as jnp

def loss(w, x):
    return ((w * x) ** 2).sum()

@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(loss)(w, x)

evaluate = jax.jit(loss)

class Trainer:
    @staticmethod
    def double(x):
        return jax.jit(lambda x: 2 * x)(x)

    def step(self, x):
        return train_step(x, x)

if __name__ == "__main__":
    w = jnp.ones(4)
    for _ in range(10):
        w = train_step(w, jnp.ones(4))
    evaluate(w, jnp.ones(4))
    Trainer().step(w)
    Trainer.double(w)
    {after}
"""


def train(folder: Path, before: str = "", after: str = "") -> Path:
    """Writes a training script that does `before` ahead of importing JAX and `after` at the end."""
    path = folder / "train.py"
    path.write_text(TRAIN.format(before=before, after=after))
    return path


def events(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def calls(metrics: Path) -> dict[str, float]:
    """The calls of each instrumented function in a metrics file."""
    found = re.findall(r'^jax_function_calls_total\{function="(.*)"\} (.*)$', metrics.read_text(), re.MULTILINE)
    return {function: float(value) for function, value in found}


def test_jax_is_not_imported_before_the_script_does(folder: Path) -> None:
    """Variables that a script sets ahead of its own `import jax` count, as JAX reads them when imported."""
    train(
        folder,
        before="def early(): pass\nprint('jax' in sys.modules); os.environ['JAX_ENABLE_X64'] = '1'",
        after="print(jnp.ones(2).dtype)",
    )
    command = (*OBSERVED, "--event-log", "events.jsonl", "--instrument", "__main__:early")
    assert result(command, folder, ["train.py"]) == ("False\nfloat64\n", "", 0)
    assert any(event["event"] == "compilation" for event in events(folder / "events.jsonl"))


def test_counts_and_causes_are_written(folder: Path) -> None:
    """The event log has the compilations and the end, the metrics file the calls that were asked for."""
    train(folder)
    command = [*OBSERVED, "--event-log", "events.jsonl", "--metrics-file", "metrics.prom"]
    for function in ("__main__:train_step", "train:evaluate", "train:Trainer.step", "train:Trainer.double"):
        command += ["--instrument", function]
    assert result(tuple(command), folder, ["train.py"]) == ("", "", 0)
    written = events(folder / "events.jsonl")
    compiled = [event["function"] for event in written if event["event"] == "compilation"]
    assert compiled.count("__main__.train_step") == 1
    assert (written[-1]["event"], written[-1]["reason"], written[-1]["code"]) == ("exit", "normal", 0)
    assert calls(folder / "metrics.prom") == {
        "__main__.train_step": 11.0,
        "__main__.loss": 1.0,
        "__main__.Trainer.step": 1.0,
        "__main__.Trainer.double": 1.0,
    }


def test_functions_of_imported_modules_are_instrumented(folder: Path) -> None:
    """A function is replaced when its module has been imported, before anybody can take it from there."""
    train(folder)
    (folder / "script.py").write_text(
        "from train import train_step, jnp\nfor _ in range(3): train_step(jnp.ones(2), 1.0)\n"
    )
    command = (*OBSERVED, "--metrics-file", "metrics.prom", "--instrument", "train:train_step")
    assert result(command, folder, ["script.py"]) == ("", "", 0)
    assert calls(folder / "metrics.prom") == {"train.train_step": 3.0}


def test_functions_of_a_module_run_by_name_are_instrumented(folder: Path) -> None:
    """`-m` runs the module as main, under either name of it."""
    train(folder, after="1 / 0")
    plain = result(PLAIN, folder, ["-m", "train"])
    for name in ("train", "__main__"):
        command = (*OBSERVED, "--metrics-file", "metrics.prom", "--instrument", f"{name}:train_step")
        assert result(command, folder, ["-m", "train"]) == plain
        assert calls(folder / "metrics.prom") == {"__main__.train_step": 11.0}


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
        ("for step in (jnp.sin, jnp.cos):\n    pass\nstep(1.0)", None),
        ("with jax.log_compiles(False):\n    def step(x): return x\n    step(1)", {"step": 1.0}),
        ("match 1:\n    case 1:\n        def step(x): return x\n        step(1)", {"step": 1.0}),
        ("def step():\n    step = 1\n    return step\nstep()", {"step": 1.0}),
        (
            "def make():\n    global step\n    def step(x): return x\n    step = jax.jit(step)\n    step(1)\nmake()",
            {"step": 1.0},
        ),
        (
            "def make():\n  def inner():\n    global step\n    step = jnp.sin\n  inner()\nmake()\nstep(1.0)",
            None,
        ),
        (
            "class Maker:\n    def __init__(self):\n        global step\n        step = jnp.sin\nMaker()\nstep(1.0)",
            None,
        ),
        ("globals()['step'] = jnp.sin\nstep(1.0)", None),
        ("exec('def step(x): return x')\nstep(1)", {"step": 1.0}),
        ("from jax.numpy import *\nstep = sin\nstep(1.0)", None),
    ],
)
def test_however_the_name_is_bound(source: str, counted: dict[str, float] | None, folder: Path) -> None:
    (folder / "script.py").write_text(f"import jax, jax.numpy as jnp\n{source}\n")
    command = (*OBSERVED, "--metrics-file", "metrics.prom", "--instrument", "__main__:step")
    assert result(command, folder, ["script.py"]) == ("", "", 0)
    found = calls(folder / "metrics.prom")
    if counted is None:
        assert list(found.values()) == [1.0]
    else:
        assert found == {f"__main__.{name}": value for name, value in counted.items()}


def test_a_name_that_nothing_is_seen_to_bind(folder: Path) -> None:
    (folder / "others.py").write_text("def step(x): return x\n")
    (folder / "script.py").write_text(
        '"""A docstring."""\nfrom __future__ import annotations\nimport jax\n'
        "from others import *\nassert __doc__ == 'A docstring.'\nstep(1)\n"
    )
    command = (*OBSERVED, "--metrics-file", "metrics.prom", "--instrument", "__main__:step")
    assert result(command, folder, ["script.py"]) == ("", "", 0)
    assert calls(folder / "metrics.prom") == {"others.step": 1.0}


@pytest.mark.parametrize("name", ["a syntax error", "a late syntax error", "warnings", "a docstring", "an error"])
def test_a_script_compiled_for_instrumenting_is_as_ever(name: str, folder: Path) -> None:
    """Errors and warnings of compiling are the same and come once."""
    (folder / "script.py").write_text(textwrap.dedent(SCRIPTS[name]).lstrip("\n") + "\ndef step(): pass\n")
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
def test_a_function_that_never_appeared_is_named(asked: str, said: str, folder: Path) -> None:
    train(folder, after="sys.exit(3)")
    outcome = result((*OBSERVED, "--instrument", asked), folder, ["train.py"])
    assert outcome == ("", f"jaxobs: `{asked}` was not instrumented: {said}\n", 3)


@pytest.mark.parametrize("asked", ["__main__:late", "other:late"])
def test_a_function_that_is_bound_too_late_is_not_said_to_be_missing(asked: str, folder: Path) -> None:
    source = "import jax\ndef make():\n    globals()['late'] = jax.jit(lambda x: x)\n"
    (folder / "other.py").write_text(source)
    (folder / "script.py").write_text(
        f"{source}import other\nif True:\n    make()\n    other.make()\n    late(1)\n    exit()"
    )
    _, err, _ = result((*OBSERVED, "--instrument", asked), folder, ["script.py"])
    assert err == (
        f"jaxobs: `{asked}` was not instrumented: it was bound after the last check. "
        "Call `jaxobs.instrument` on it where it is defined.\n"
    )


@pytest.mark.parametrize("asked", ["train_step", "train:", ":step", "train:a b", "a-b:c"])
def test_a_malformed_name_is_a_usage_error(asked: str, folder: Path) -> None:
    """The script does not start."""
    (folder / "script.py").write_text("print('ran')")
    out, err, code = result((*OBSERVED, "--instrument", asked), folder, ["script.py"])
    assert (out, code) == ("", 2)
    assert err.startswith(f"jaxobs: `instrument` is {asked!r}, which is not of the form MODULE:FUNCTION")


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


def test_what_threads_and_exit_handlers_do_is_in_the_last_state(folder: Path) -> None:
    """The last state is written after them."""
    train(
        folder,
        after=textwrap.dedent("""
        import atexit, threading, time
            atexit.register(train_step, w, w)
            threading.Thread(target=lambda: (time.sleep(0.3), train_step(w, w))).start()
        """).strip(),
    )
    command = (*OBSERVED, "--metrics-file", "metrics.prom", "--instrument", "__main__:train_step")
    assert result(command, folder, ["train.py"]) == ("", "", 0)
    assert calls(folder / "metrics.prom") == {"__main__.train_step": 13.0}


def test_children_write_nothing_over_the_parents_files(folder: Path) -> None:
    """Forked and spawned children leave log and metrics to the parent."""
    train(
        folder,
        after=textwrap.dedent("""
        import multiprocessing
            for method in ("fork", "spawn"):
                process = multiprocessing.get_context(method).Process(target=print, args=(method,))
                process.start()
                process.join()
                assert process.exitcode == 0
            if os.fork() == 0:
                sys.exit(0)
            os.wait()
        """).strip(),
    )
    command = (*OBSERVED, "--event-log", "events.jsonl", "--metrics-file", "metrics.prom")
    command = (*command, "--instrument", "__main__:train_step", "--instrument", "nowhere:f")
    out, err, code = result(command, folder, ["train.py"], env={"PYTHONWARNINGS": "ignore"})
    assert (out.split(), err.count("nowhere"), err.count("\n"), code) == (["fork", "spawn"], 2, 1, 0)
    written = events(folder / "events.jsonl")
    assert len({event["pid"] for event in written}) == 1
    assert [event["event"] for event in written].count("exit") == 1
    assert calls(folder / "metrics.prom") == {"__main__.train_step": 11.0}


def test_the_address_is_printed_and_answers(folder: Path) -> None:
    (folder / "script.py").write_text("import sys; print('ready', flush=True); sys.stdin.read()")
    with running(folder, "--port", str(free_port())) as process:
        assert process.stderr is not None and process.stdin is not None
        line = process.stderr.readline()
        assert re.fullmatch(r"jaxobs: http://127\.0\.0\.1:\d+/\n", line)
        with urllib.request.urlopen(line.split()[1] + "metrics", timeout=120) as answer:
            assert b"jaxobs_" in answer.read()
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait(120) == 0


def test_a_taken_port_is_told_once_and_the_script_runs(folder: Path) -> None:
    """Without the endpoint the files are written all the same."""
    (folder / "script.py").write_text("import sys; print('ready', flush=True); sys.stdin.read()")
    port = str(free_port())
    with running(folder, "--port", port) as first:
        assert first.stderr is not None and first.stdin is not None
        first.stderr.readline()
        command = (*OBSERVED[:4], "--port", port, "--event-log", "events.jsonl")
        out, err, code = result(command, folder, ["script.py"], input="")
        assert (out, code, err.count("\n")) == ("ready\n", 0, 1)
        assert port in err
        assert events(folder / "events.jsonl")[-1]["event"] == "exit"
        first.stdin.close()
        assert first.wait(120) == 0


def test_a_stuck_script_still_leaves_its_last_state(folder: Path) -> None:
    """SIGTERM in the midst of a long C call: the last state is written, and the process dies of the signal."""
    # To lock a mutex twice is never interrupted.
    (folder / "script.py").write_text(
        "import ctypes, jax\nlibc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)\n"
        "libc.pthread_mutex_lock(mutex)\nprint('ready', flush=True)\nlibc.pthread_mutex_lock(mutex)\n"
    )
    with running(folder, "--port", "0", "--event-log", "events.jsonl") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == -signal.SIGTERM
    last = events(folder / "events.jsonl")[-1]
    assert (last["event"], last["reason"], last["detail"]) == ("exit", "signal", "SIGTERM")


def test_a_bad_setting_is_a_usage_error(folder: Path) -> None:
    """Flag and variable alike; the script does not start."""
    (folder / "script.py").write_text("print('ran')")
    out, err, code = result((*OBSERVED, "--sample-interval", "soon"), folder, ["script.py"])
    assert (out, code) == ("", 2)
    assert err.startswith("jaxobs: `sample_interval` is 'soon', which is not a valid number.")
    out, err, code = result(OBSERVED, folder, ["script.py"], env={"JAXOBS_MAX_EVENTS": "0"})
    assert (out, code) == ("", 2)
    assert err.startswith("jaxobs: `JAXOBS_MAX_EVENTS` is '0', but must be ")


class running:  # noqa: N801
    """A script under observation, ended with the test."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jaxobs", "run", *options, "script.py"], cwd=folder, env=environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> subprocess.Popen[str]:
        return self.process

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
