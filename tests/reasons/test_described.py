"""Texts of static arguments and metadata: right, short, and made without running code of the program."""

import collections
import dataclasses
import enum
import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.run_programs import environment

from jaxobs.reasons import literals, signature
from jaxobs.reasons.described import MOST_TEXT, described

ran: list[str] = []


def _fatal(name: str) -> Any:
    def method(self: Any, *_: Any) -> Any:
        ran.append(name)
        raise SystemExit(name)

    return method


METHODS = (
    "__repr__", "__str__", "__format__", "__eq__", "__lt__", "__bool__", "__len__", "__iter__", "__getitem__",
    "__getattr__", "__contains__", "__index__", "keys", "items",
)  # fmt: skip
fatal: dict[str, Any] = {name: _fatal(name) for name in METHODS} | {"__hash__": lambda self: 1}
Fatal: Any = type("Fatal", (), {**fatal, "__class__": property(_fatal("__class__"))})
Untouchable: Any = type("Untouchable", (), {**fatal, "__getattribute__": _fatal("__getattribute__")})
Words: Any = type("Words", (str,), fatal)
Row: Any = type("Row", (tuple,), {**fatal, "__repr__": tuple.__repr__})
Table: Any = type("Table", (dict,), {**fatal, "__repr__": dict.__repr__})

Metaclass: Any = type(
    "Metaclass",
    (type,),
    {name: _fatal(name) for name in ("__getattribute__", "__getattr__", "__repr__", "__call__", "__instancecheck__")}
    | {name: property(_fatal(name)) for name in ("__name__", "__module__", "__dict__")},
)
classes = [type.__call__(Metaclass, "Classy", (), {"__hash__": lambda self: 1})]  # pytest looks at names of modules


class Mode(enum.Enum):
    TRAIN = "train"

    def __repr__(self) -> str:
        return str(_fatal("Mode")(self))


class Pair(NamedTuple):
    first: Any
    second: Any = 2


@dataclasses.dataclass(frozen=True)
class Config:
    width: Any
    secret: str = dataclasses.field(default="hidden", repr=False)

    __repr__ = _fatal("Config")


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    mode: Any


class Lazy:
    """A dataclass would have the field; here code gives it."""

    __dataclass_fields__ = Config.__dataclass_fields__
    width = property(_fatal("width"))


HOSTILE: dict[str, Callable[[], Any]] = {
    "object": lambda: Fatal(), "no attributes": lambda: Untouchable(), "str": lambda: Words("x"),
    "tuple": lambda: Row((1,)), "dict": lambda: Table(a=1), "enum": lambda: Mode.TRAIN, "property": lambda: Lazy(),
    "dataclass": lambda: Config(Fatal()), "slots": lambda: Slotted(Untouchable()),
    "named tuple": lambda: Pair(Fatal(), (Untouchable(),)), "items": lambda: [(Fatal(),), {"a": Fatal()}, {Fatal()}],
    "partial": lambda: functools.partial(len, Fatal(), key=Untouchable()), "class": lambda: Fatal,
    "axes": lambda: jax.sharding.PartitionSpec(Config(1)),
    "axes of a mesh": lambda: jax.sharding.Mesh(np.array(jax.devices()[:1]), (Config(1),)),
    "metaclass": lambda: object.__new__(classes[0]), "class of a metaclass": lambda: (classes[0],),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_the_program_runs(name: str) -> None:
    value = HOSTILE[name]()
    ran.clear()
    assert described(value)
    literals.write(value)
    try:
        hash(value)
    except TypeError:
        pass
    else:
        taken = signature.static(value), signature.static(value)
        assert taken[0] == taken[1] and str(taken[0])
    assert ran == []


@jax.jit
def jitted(x: Any) -> Any:
    return x


def test_texts() -> None:
    """Builtins, dataclasses, named tuples and enums by value, others by their type."""
    for value, text in (
        (Config((1, "a")), "Config(width=(1, 'a'))"),
        (Slotted(Mode.TRAIN), "Slotted(mode=Mode.TRAIN)"),
        (Pair(None), "Pair(first=None, second=2)"),
        ({"a": [1.5, {2}], 3: ()}, "{'a': [1.5, {2}], 3: ()}"),
        (frozenset({"b", "a"}), "frozenset('a', 'b')"),
        (collections.OrderedDict(a=1), "OrderedDict('a': 1)"),
        (functools.partial(jitted, 1, k=2), f"partial({__name__}.jitted, 1, k=2)"),
        (Fatal(), f"<{__name__}.Fatal object>"),
        (np.float32(3), repr(np.float32(3))), (np.zeros((2, 3)), "float64[2,3]"), (jnp.ones(3), "float32[3]"),
        (jax.tree_util.tree_structure([Fatal()]), "PyTreeDef"), (jax.lax.Precision.HIGH, "Precision.HIGH"),
        (np.ma.ones(2), "float64[2]"), (jax.random.key(0), "key<fry>[]"),
        (jax.make_jaxpr(jnp.sin)(1.0), "ClosedJaxpr"), (10**5000, "an int of 16610 bits"),
    ):  # fmt: skip
        assert described(value) == text


def test_texts_are_short() -> None:
    """A table of three million items tells how many there are; nested values share one bound."""
    assert described(tuple(range(3_000_000))).startswith("(3000000 items: 0, 1, ")
    nested: Any = ()
    for _ in range(10_000):
        nested = (nested, nested)
    for value in (tuple(range(3_000_000)), nested, "x" * 10**6, [["y" * 500] * 500] * 500):
        assert len(described(value)) <= MOST_TEXT


PROGRAM = """
import sys, threading, jax, numpy as np
lock = threading.Lock()
class Static:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __eq__(self, other): return self.number == other.number
    def __repr__(self):
        with lock: sys.exit(4)
f = jax.jit(lambda x, static: x * static.number, static_argnums=1)
with lock:
    print([float(f(1.0, Static(number))) for number in range(3)])
"""


def test_a_lock_that_the_caller_holds_is_not_waited_for() -> None:
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "-"]
    done = subprocess.run(
        command, env=environment(), input=PROGRAM, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[0.0, 1.0, 2.0]\n"), done.stderr
