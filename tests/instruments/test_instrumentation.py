"""`MODULE:FUNCTION`: the function is replaced where the module keeps it, once."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import jax  # noqa: F401 - functions are replaced once JAX is there
import pytest

from jaxobs.base.errors import SettingError
from jaxobs.instruments.instrumentation import instrument_when_imported, main_compiler, unmet
from jaxobs.instruments.wrapper import CountedFunction
from jaxobs.state import store

SOURCE = """
def step(x):
    "One step."
    return x + 1

class Model:
    def call(self, x):
        return x, self
    @staticmethod
    def of(x):
        return x
    @classmethod
    def made(cls, x):
        return cls, x
    @property
    def size(self):
        return 1

class Larger(Model):
    pass

model = Model()
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that can be imported, and leaves nothing behind."""
    store.current().reset()
    name = f"named_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield name
    sys.modules.pop(name, None)
    store.current().reset()


def calls() -> dict[str, int]:
    """The calls of each instrumented function, by the last part of its name."""
    functions = store.current().snapshot().functions
    return {each.name.rpartition(".")[2]: each.calls for each in functions if each.calls}


def test_functions_and_methods(module: str) -> None:
    for path in ("step", "Model.call", "Model.of", "Model.made", "Larger.of"):
        instrument_when_imported(f"{module}:{path}")
    assert module not in sys.modules
    named = importlib.import_module(module)
    model = named.Model()
    assert (named.step(1), model.call(2), model.of(3)) == (2, (2, model), 3)
    assert (named.Model.made(4), named.Larger.made(5)) == ((named.Model, 4), (named.Larger, 5))
    assert named.Larger.of(6) == 6
    assert calls() == {"step": 1, "call": 1, "of": 2, "made": 2}
    assert named.step.__doc__ == "One step."
    assert not [line for line in unmet() if module in line]


def test_a_module_that_is_there_already(module: str) -> None:
    named = importlib.import_module(module)
    for _ in range(2):
        instrument_when_imported(f"{module}:step")
    instrument_when_imported(f"{module}:model.call")
    named.step(1)
    assert named.model.call(2) == (2, named.model)
    assert isinstance(named.step, CountedFunction)
    assert calls() == {"step": 1, "call": 1}


def test_what_cannot_be_instrumented_is_left_alone_and_told(module: str) -> None:
    for path in ("number", "Model", "Model.size", "nothing", "Nobody.call", "step.deeper.still"):
        instrument_when_imported(f"{module}:{path}")
    named = importlib.import_module(module)
    assert (named.number, isinstance(named.model, named.Model), named.model.size) == (3, True, 1)
    told = "\n".join(line for line in unmet() if module in line)
    for words in (
        f"`{module}:number` was not instrumented: it is not a function but int.",
        f"`{module}:Model` was not instrumented: it is a class.",
        f"`{module}:Model.size` was not instrumented: it is not a function but property.",
        f"`{module}` has no function `nothing`. It has: step.",
        f"`{module}.Nobody` has no function `call`. It has no functions.",
        f"`{module}.step.deeper` has no function `still`. It has no functions.",
    ):
        assert words in told


@pytest.mark.parametrize("spec", ["", "step", ":", "a:", ":b", "a:b:c", "a.:b", "a:1", "a b:c"])
def test_a_malformed_name_is_refused(spec: str) -> None:
    for door in (instrument_when_imported, lambda spec: main_compiler([spec], ())):
        with pytest.raises(SettingError, match="not of the form MODULE:FUNCTION"):
            door(spec)


def test_a_main_script_of_which_nothing_is_asked_is_compiled_as_ever() -> None:
    assert main_compiler(["elsewhere:step"], ("script",)) is None
    assert main_compiler([], ("script",)) is None
    assert main_compiler(["script:step"], ("script",)) is not None
