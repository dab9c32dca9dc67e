"""`when_imported`: calls back at the end of an import, and leaves the import as it was."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from jaxobs.base import guard
from jaxobs.base.import_hooks import when_imported

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module that can be imported, and takes it out again afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written: set[str] = set()

    def write(name: str, source: str) -> str:
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        written.add(name.partition(".")[0])
        return name

    yield write
    for name in list(sys.modules):
        if name.partition(".")[0] in written:
            del sys.modules[name]


class Calls:
    """Waits for a module, counts the calls, and keeps what was in the module at the last."""

    def __init__(self, module: str) -> None:
        self.module, self.count = module, 0
        self.seen: dict[str, object] = {}
        when_imported(module, self)

    def __call__(self) -> None:
        self.count += 1
        self.seen = dict(vars(sys.modules[self.module]))


def test_at_once_when_the_module_is_there() -> None:
    assert Calls("json").count == 1


def test_at_the_end_of_the_import(write: Write) -> None:
    calls = Calls(name := write("hooked_end", "first = 1\nlast = 2\n"))
    assert calls.count == 0
    module = importlib.import_module(name)
    importlib.import_module(name)
    assert importlib.reload(module) is module
    assert (calls.count, calls.seen["last"]) == (1, 2)


def test_several_callbacks_in_their_order(write: Write) -> None:
    name = write("hooked_several", "")
    order: list[int] = []
    for number in range(3):
        when_imported(name, lambda number=number: order.append(number))
    importlib.import_module(name)
    assert order == [0, 1, 2]


def test_module_spec_and_loader_are_what_they_would_be(write: Write) -> None:
    plain, hooked = (importlib_of(name := write(f"hooked_spec_{i}", ""), wait=bool(i)) for i in range(2))
    assert name == "hooked_spec_1"
    for module in (plain, hooked):
        spec = module.__spec__
        assert spec is not None
        assert type(spec) is ModuleSpec
        assert type(module.__loader__) is SourceFileLoader is type(spec.loader)
        assert module.__loader__ is spec.loader
    assert vars(plain).keys() == vars(hooked).keys()
    assert vars(plain.__spec__).keys() == vars(hooked.__spec__).keys()
    assert vars(hooked.__loader__).keys() == vars(plain.__loader__).keys()


def importlib_of(name: str, wait: bool) -> ModuleType:
    """The module, imported with somebody waiting or not."""
    if wait:
        when_imported(name, lambda: None)
    return importlib.import_module(name)


def test_a_submodule_and_a_package_without_code(write: Write) -> None:
    write("hooked_package.__init__", "import hooked_package.part\n")
    part = Calls(write("hooked_package.part", "x = 1"))
    write("hooked_namespace.part", "")
    namespace = Calls("hooked_namespace")
    importlib.import_module("hooked_package")
    importlib.import_module("hooked_namespace.part")
    assert (part.count, namespace.count) == (1, 1)


def test_an_import_that_fails_leaves_it_waiting(write: Write) -> None:
    calls = Calls(name := write("hooked_failing", "raise RuntimeError('not yet')"))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not yet"):
            importlib.import_module(name)
    assert calls.count == 0
    write(name, "x = 1  # longer than before")
    importlib.import_module(name)
    assert (calls.count, calls.seen["x"]) == (1, 1)


def test_tracebacks_are_what_they_would_be(write: Write) -> None:
    for source in ("raise RuntimeError", "import no_such_module_at_all", "x = ("):
        frames = []
        for number in range(2):
            name = write(f"hooked_traceback_{number}", source)
            try:
                importlib_of(name, wait=bool(number))
            except Exception as error:
                traceback = error.__traceback__
            frames.append([])
            while traceback is not None:
                if traceback.tb_frame.f_code is not importlib_of.__code__:
                    frames[-1].append((traceback.tb_frame.f_code.co_name, traceback.tb_lineno))
                traceback = traceback.tb_next
            sys.modules.pop(name, None)
        assert frames[0] == frames[1]


def test_looking_for_a_module_does_not_call(write: Write) -> None:
    """`find_spec` gives a spec as ever; a module made of it by hand is nobody's import."""
    calls = Calls(name := write("hooked_looked_for", "x = 1"))
    spec = importlib.util.find_spec(name)
    assert spec is not None and isinstance(spec, ModuleSpec) and type(spec.loader) is SourceFileLoader
    assert repr(spec).startswith("ModuleSpec(name='hooked_looked_for'")
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    assert calls.count == 0
    importlib.import_module(name)
    assert calls.count == 1


def test_a_callback_may_import_the_module(write: Write) -> None:
    name = write("hooked_reentrant", "x = 1")
    seen: list[int] = []
    when_imported(name, lambda: seen.append(importlib.import_module(name).x))
    when_imported(name, lambda: when_imported(name, lambda: seen.append(2)))
    importlib.import_module(name)
    assert seen == [1, 2]


def test_while_the_module_is_being_imported(write: Write) -> None:
    name = write(
        "hooked_midway",
        """
        from jaxobs.base.import_hooks import when_imported
        seen = []
        when_imported(__name__, lambda: seen.append(last))
        last = 1
        """,
    )
    assert importlib.import_module(name).seen == [1]


def test_other_threads_wait_for_the_callback(write: Write) -> None:
    name = write("hooked_threads", "value = 0")
    values: list[int] = []
    threads = [threading.Thread(target=lambda: values.append(importlib.import_module(name).value)) for _ in range(8)]

    def set_value() -> None:
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        sys.modules[name].value = 1  # type: ignore[attr-defined]

    when_imported(name, set_value)
    importlib.import_module(name)
    for thread in threads:
        thread.join()
    assert values == [1] * 8


def test_registering_while_another_thread_imports(write: Write) -> None:
    """However the two fall together, each callback comes exactly once."""
    for number in range(20):
        write(f"hooked_race_within_{number}", "import time; time.sleep(0.002)")
        name = write(f"hooked_race_{number}", f"import hooked_race_within_{number}")
        thread = threading.Thread(target=importlib.import_module, args=(name,))
        thread.start()
        calls = [Calls(name) for _ in range(40)]
        thread.join()
        assert [each.count for each in calls] == [1] * 40
        assert type(sys.modules[name].__spec__) is ModuleSpec


def test_a_failing_callback_is_counted(write: Write) -> None:
    name = write("hooked_guarded", "x = 1")
    guard.raise_internal_errors(False)
    try:
        when_imported(name, lambda: 1 / 0)
        calls = Calls(name)
        assert importlib.import_module(name).x == 1
    finally:
        guard.raise_internal_errors(True)
    assert calls.count == 1
    assert guard.internal_errors()[f"when {name} was imported"] == 1
    guard.reset()


class Ahead:
    """A finder that put itself in front of all others and asks the standard one, as import hooks of typecheckers do."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name) if name == self.name else None


def test_a_finder_in_front_is_caught_up_with(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(name := write("hooked_past", "x = 1"))
    monkeypatch.setattr(sys, "meta_path", [Ahead(name), *sys.meta_path])
    importlib.import_module(name)
    importlib.import_module(write("hooked_past_next", ""))
    assert calls.count == 1


def test_a_finder_that_fails_is_not_hidden(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of somebody else's finder arrives, with the traceback that it would have."""

    class Failing:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "hooked_unfindable":
                raise LookupError("of the finder")

    Calls("hooked_unfindable")
    monkeypatch.setattr(sys, "meta_path", [sys.meta_path[0], Failing(), *sys.meta_path[1:]])
    with pytest.raises(LookupError, match="of the finder") as raised:
        importlib.import_module("hooked_unfindable")
    assert "import_hooks.py" not in [Path(str(entry.path)).name for entry in raised.traceback]


def test_a_lazy_module_stays_lazy(write: Write) -> None:
    """A module that will be loaded when used is not loaded by us, and noticed after it was."""
    calls = Calls(name := write("hooked_lazy", "import sys; sys.hooked_lazy_ran = True"))
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    importlib.import_module(write("hooked_lazy_next", ""))
    assert (calls.count, hasattr(sys, "hooked_lazy_ran")) == (0, False)
    assert module.sys is sys
    importlib.import_module(write("hooked_lazy_last", ""))
    assert (calls.count, hasattr(sys, "hooked_lazy_ran")) == (1, True)


def test_a_forked_child_waits_for_nothing(write: Write) -> None:
    calls = Calls(name := write("hooked_fork", ""))
    code = f"""
        import os, sys
        sys.path.insert(0, {os.path.dirname(str(importlib.util.find_spec(name).origin))!r})
        from jaxobs.base.import_hooks import when_imported
        when_imported({name!r}, lambda: print("called", flush=True))
        if os.fork() == 0:
            import {name}
            os._exit(0)
        os.wait()
        print("child done", flush=True)
        import {name}
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("child done\ncalled\n", "")
    assert calls.count == 0


def test_only_the_standard_library_and_the_guard_are_imported() -> None:
    code = "import jaxobs.base.import_hooks, sys; print('jax' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False False\n"
