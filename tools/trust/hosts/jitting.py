"""Functions and arguments of `jax.jit`, and uses of it and of JAX."""

from __future__ import annotations

from tools.trust.case import Case

_ONE = """
import jax, jax.numpy as jnp
"""
_STATIC = """
import jax, jax.numpy as jnp, threading, sys, time
{classes}
step = jax.jit(lambda x, s: x + s.number, static_argnums=1)
print([float(step(1.0, Static(number % 2))) for number in range(6)])
"""

CASES = (
    Case("a static argument whose repr locks", "the `repr` takes a lock that the caller holds", _STATIC.format(classes="""
lock = threading.Lock()
class Static:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __eq__(self, other): return self.number == other.number
    def __repr__(self):
        with lock: return "never"
lock.acquire()
""")),
    Case("a static argument whose repr exits", "SystemExit, KeyboardInterrupt, and recursion without end",
         _STATIC.format(classes="""
class Static:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __eq__(self, other): return self.number == other.number
    def __repr__(self): sys.exit(9)
    def __str__(self): raise KeyboardInterrupt
    def __format__(self, how): return format(self, how)
""")),
    Case("a static argument whose attributes bite", "`__getattr__`, `__class__`, `__dict__` and a metaclass raise",
         _STATIC.format(classes="""
class Meta(type):
    def __getattr__(cls, name):
        if name.startswith("__jax") : raise AttributeError(name)
        raise SystemExit(name)
    def __repr__(cls): raise SystemExit("meta")
class Static(metaclass=Meta):
    def __init__(self, number): object.__setattr__(self, "number", number)
    def __hash__(self): return self.number
    def __eq__(self, other): return self.number == other.number
    def __getattr__(self, name):
        if name.startswith("__") or name in ("aval", "dtype"): raise AttributeError(name)
        raise SystemExit(name)
    @property
    def __dict__(self): raise SystemExit("dict")
""")),
    Case("calls of eq are counted", "JAX alone makes 9, or 12 if another lookup comes between, and jaxobs adds no call", _STATIC.format(classes="""
import atexit
counts = {"eq": 0}
class Static:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __eq__(self, other): counts["eq"] += 1; return self.number == other.number
atexit.register(lambda: print(counts["eq"] <= 12))
""")),
    Case("eq raises between types", "a static argument that can't be compared", _STATIC.format(classes="""
class Static:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __eq__(self, other):
        if not isinstance(other, Static): raise SystemExit("compared with " + type(other).__name__)
        return self.number == other.number
""")),
    Case("static arguments of every kind", "builtins, enums, named tuples, functions, types, NaN, huge ones", """
import collections, dataclasses, decimal, enum, fractions, functools, pathlib, re, types, jax, jax.numpy as jnp
class Colour(enum.Enum): RED = 1
Pair = collections.namedtuple("Pair", "a b")
@dataclasses.dataclass(frozen=True)
class Config: table: tuple; inner: object = None
kinds = [1, 2**4000, 1.5, float("nan"), float("inf"), 1j, "text", "x" * 2_000_000, "\\ud800", b"bytes", True, None, ..., (1, (2, (3,))),
         frozenset({1, 2}), range(10**9), Colour.RED, Pair(1, 2), Config(tuple(range(300_000)), Config((), None)), len, int, print,
         lambda: 1, functools.partial(max, 1), decimal.Decimal("1.1"), fractions.Fraction(1, 3), pathlib.PurePath("a"),
         re.compile("a"), types.MappingProxyType, jnp.float32, jnp.dtype("int8"), jax.sharding.PartitionSpec("x"), NotImplemented]
step = jax.jit(lambda x, kind: x + 1, static_argnums=1)
print(len([float(step(1.0, kind)) for kind in kinds]))
nested = ()
for _ in range(300): nested = (nested,)
print(float(step(1.0, nested)))
"""),
    Case("unhashable static arguments", "JAX's own error, with its text", _ONE + """
for given in ([1], {}, jnp.ones(2)):
    try: jax.jit(lambda x, s: x, static_argnums=1)(1.0, given)
    except ValueError as error: print(str(error)[:60])
"""),
    Case("a static argument with a slow repr", "its description would take 3 s", _STATIC.format(classes="""
class Static:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __eq__(self, other): return self.number == other.number
    def __repr__(self): time.sleep(3); print("described"); return "slow"
""")),
    Case("subclasses of builtins as static arguments", "an int, a str and a tuple with hostile methods",
         _ONE + """
class Int(int):
    def __repr__(self): raise SystemExit("int")
    __str__ = __format__ = __index__ = __repr__
class Text(str):
    def __repr__(self): raise SystemExit("str")
    __str__ = __len__ = __getitem__ = __iter__ = encode = __repr__
class Tuple(tuple):
    def __iter__(self): raise SystemExit("tuple")
    __len__ = __repr__ = __getitem__ = __iter__
step = jax.jit(lambda x, s: x + 1, static_argnums=1)
print([float(step(1.0, s)) for s in (Int(3), Int(4), Text("a"), Text("b"), Tuple((1,)), Tuple((2,)))])
"""),
    Case("a pytree that raises in flatten", "the error is the program's, and comes once", """
import jax, jax.numpy as jnp
flattened, fails = [], []
class Tree: pass
def flatten(tree):
    flattened.append(1)
    if fails: raise LookupError("flatten")
    return (jnp.ones(2),), None
jax.tree_util.register_pytree_node(Tree, flatten, lambda *_: Tree())
step = jax.jit(lambda tree: jnp.ones(2))
print(step(Tree()), step(Tree()))
fails.append(1)
try: step(Tree())
except LookupError as error: print(error)
"""),
    Case("a pytree with hostile metadata", "its auxiliary data exits when described", """
import jax, jax.numpy as jnp
class Meta:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __eq__(self, other): return self.number == other.number
    def __repr__(self): raise SystemExit("repr")
class Key:
    def __repr__(self): return "key"
    __str__ = __repr__
class Tree:
    def __init__(self, number): self.number = number
jax.tree_util.register_pytree_with_keys(
    Tree, lambda tree: (((Key(), jnp.ones(2)),), Meta(tree.number)), lambda meta, leaves: Tree(meta.number))
step = jax.jit(lambda tree: jnp.ones(2) * tree.number)
print([step(Tree(number)).tolist() for number in (1, 2, 1, 3)])
"""),
    Case("arguments with `__jax_array__`", "conversion runs code of the program, as often as without", """
import jax, jax.numpy as jnp, numpy as np, warnings
warnings.simplefilter("ignore")
converted = []
class Like:
    shape, dtype = (2,), np.dtype("float32")
    def __jax_array__(self): converted.append(1); return jnp.ones(2)
    def __array__(self, dtype=None, copy=None): raise SystemExit("array")
try: print(jnp.add(Like(), 1))
except (TypeError, ValueError) as error: print(type(error).__name__)
print(len(converted))
"""),
    Case("functions with hostile attributes", "`__name__`, `__qualname__` and `__module__` are odd or raise", """
import functools, jax, jax.numpy as jnp
def body(x): return x + 1
body.__name__ = "a\\nb\\x00\\u202e" + "n" * 5000; body.__qualname__ = "<script>alert(1)</script>"; body.__module__ = None
print(jax.jit(body)(jnp.ones(2)))
class Callable:
    def __init__(self, name): self.name = name
    def __call__(self, x): return x + 1
    def __getattr__(self, name):
        if name in ("__wrapped__", "__name__", "__qualname__", "__signature__", "__text_signature__", "__code__"): raise AttributeError(name)
        raise AttributeError(name)
    def __repr__(self): raise SystemExit("repr")
    def __hash__(self): return 1
    def __eq__(self, other): return self is other
    __name__ = "callable"
print(jax.jit(Callable("a"))(jnp.ones(3)), jax.jit(functools.partial(Callable("b")))(jnp.ones(4)))
exec(compile("def made(x): return x * 2", "no such file.py", "exec"))
print(jax.jit(made)(jnp.ones(2)), jax.jit(eval("lambda x: x * 3"))(jnp.ones(2)))
print(jax.jit(max, static_argnums=(0, 1))(1, 2))
"""),
    Case("`__del__` that compiles, blocks and raises", "finalizers run in the middle of everything", """
import gc, sys, jax, jax.numpy as jnp
sys.unraisablehook = lambda details: print("unraisable", details.exc_type.__name__)
step = jax.jit(lambda x: x + 1)
class Last:
    def __init__(self, size): self.size, self.own = size, self
    def __del__(self):
        print(self.size, step(jnp.ones(self.size)).shape)
        if self.size == 3: raise LookupError("no")
for size in (2, 3, 4): Last(size)
gc.collect()
def body(x):
    Last(7); gc.collect()
    return x
print(jax.jit(body)(jnp.ones(2)))
"""),
    Case("objects die when they did", "jaxobs keeps no object of the program alive", """
import gc, weakref, jax, jax.numpy as jnp
died = []
class Static: pass
def run():
    static, big = Static(), jnp.ones(1000)
    def body(x, s): return x + 1
    step = jax.jit(body, static_argnums=1)
    step(big, static)
    for name, each in (("function", body), ("static", static), ("array", big), ("jitted", step)):
        weakref.finalize(each, died.append, name)
run(); jax.clear_caches(); gc.collect()
print(sorted(died))
"""),
    Case("nested jit, 40 deep", "jit within jit, with grad and vmap around", """
import jax, jax.numpy as jnp
body = lambda x: x * 1.01
for depth in range(40): body = (lambda inner: jax.jit(lambda x: inner(x) + 1))(body)
print(round(float(jax.jit(jax.grad(lambda x: jax.vmap(body)(x).sum()))(jnp.ones(3))[0]), 5))
"""),
    Case("exceptions in jit", "tracebacks are filtered as JAX filters them", """
import traceback, jax, jax.numpy as jnp
def body(x):
    if x > 0: return x
try: jax.jit(body)(jnp.ones(()))
except jax.errors.TracerBoolConversionError as error:
    print([frame.name for frame in traceback.extract_tb(error.__traceback__)], type(error.__cause__).__name__)
try: jax.jit(lambda x: undefined)(1.0)
except NameError as error: print(error, [frame.name for frame in traceback.extract_tb(error.__traceback__)])
try: jnp.ones(2) @ jnp.ones(3)
except TypeError as error: print(str(error)[:40])
"""),
    Case("exceptions with hostile arguments", "their text, truth, comparison and class run code of the program", _ONE + """
import threading
lock = threading.Lock()
class Exits:
    def __str__(self): raise SystemExit("str of an argument")
    __repr__ = __format__ = __str__
class Locks:
    def __str__(self):
        with lock: return "never"
    __repr__ = __str__
class Meta(type):
    def __getattribute__(cls, name):
        if armed: raise SystemExit("metaclass: " + name)
        return type.__getattribute__(cls, name)
class Error(ValueError, metaclass=Meta):
    def __eq__(self, other): raise SystemExit("eq")
    __bool__ = __len__ = __hash__ = __eq__
armed = True
for error in (ValueError(Exits()), RuntimeError(Locks(), 2), MemoryError(Exits()), Error(Locks()), Error(1)):
    def fails(x):
        try: raise Error(2)
        except ValueError as inner: raise error from inner
    with lock:
        try: jax.jit(fails)(1.0)
        except Exception: print("caught")
armed = False
"""),
    Case("exceptions in callbacks", "pure_callback, io_callback, debug.print and debug.callback", """
import sys, logging, jax, jax.numpy as jnp
from jax.experimental import io_callback
logging.disable(logging.CRITICAL)
def fails(*_): raise LookupError("in the callback")
shape = jax.ShapeDtypeStruct((), jnp.float32)
for name, call in (("pure", lambda x: jax.pure_callback(fails, shape, x)), ("io", lambda x: io_callback(fails, shape, x))):
    try: jax.block_until_ready(jax.jit(call)(1.0))
    except Exception as error: print(name, type(error).__name__, "in the callback" in str(error))
jax.jit(lambda x: jax.debug.print("x is {}", x))(2.0); jax.effects_barrier()
seen = []
jax.jit(lambda x: jax.debug.callback(seen.append, x))(3.0); jax.effects_barrier()
print(len(seen))
""", flags=("-W", "ignore")),
    Case("jax.clear_caches in the middle", "also while a function is being traced", """
import jax, jax.numpy as jnp
traced = []
def body(x): traced.append(x.shape); return x + 1
step = jax.jit(body)
step(jnp.ones(2)); jax.clear_caches(); step(jnp.ones(2)); step.clear_cache(); step(jnp.ones(2))
def clears(x): jax.clear_caches(); return step(x)
print(jax.jit(clears)(jnp.ones(3)), len(traced))
"""),
    Case("changes of jax.config", "between and inside functions, and contexts of it", """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
jax.config.update("jax_enable_x64", True); print(step(jnp.ones(2)).dtype)
jax.config.update("jax_enable_x64", False); print(step(jnp.ones(2)).dtype)
with jax.default_matmul_precision("highest"): step(jnp.ones(2))
with jax.disable_jit(): print(step(jnp.ones(2)))
jax.config.update("jax_traceback_filtering", "off"); jax.config.update("jax_debug_nans", True)
try: step(jnp.array(float("nan")))
except FloatingPointError: print("nan")
jax.config.update("jax_log_compiles", False); jax.config.update("jax_explain_cache_misses", False)
"""),
    Case("jax.monitoring cleared and used", "the program drops all listeners and has its own", """
import jax, jax.monitoring, jax.numpy as jnp
seen = []
jax.monitoring.clear_event_listeners()
jax.monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: seen.append(event.rpartition("/")[2]))
jax.jit(lambda x: x + 1)(jnp.ones(2))
print("backend_compile_duration" in seen)
jax.monitoring.clear_event_listeners()
print(jax.jit(lambda x: x + 2)(jnp.ones(2)))
"""),
    Case("jax.jit monkeypatched and wrapped", "the program replaces jax.jit, and wraps jitted functions", """
import functools, jax, jax.numpy as jnp
original, jitted = jax.jit, []
@functools.wraps(original)
def own(fun=None, **options):
    jitted.append(getattr(fun, "__name__", "?"))
    return original(fun, **options)
jax.jit = own
class Step:
    def __init__(self, fun): self.fun = jax.jit(fun)
    def __getattr__(self, name): return getattr(self.fun, name)
    def __call__(self, *given): return self.fun(*given)
def body(x): return x + 1
step = Step(body)
print(step(jnp.ones(2)), step.lower(jnp.ones(3)).compile()(jnp.ones(3)), jitted)
jax.jit = original
print(type(jax.jit(body)).__name__, jax.jit.__module__, jax.jit.__name__)
"""),
    Case("jitted functions: copy, pickle, weakref, repr", "jaxobs changes none of these", """
import copy, inspect, pickle, weakref, jax, jax.numpy as jnp
@jax.jit
def step(x: int, y=2): "Its docstring."; return x + y
print(repr(step)[:30], step.__name__, step.__doc__, inspect.signature(step), step.__wrapped__.__name__)
print(pickle.loads(pickle.dumps(step))(1), copy.copy(step) is step, copy.deepcopy(step) is step, weakref.ref(step)() is step)
print(type(step).__mro__[-1].__name__, hash(step) == hash(step), step == step, {step: 1}[step], isinstance(step, jax.stages.Wrapped))
"""),
    Case("methods, properties and class attributes", "jit as a descriptor, a class method and a static method", """
import functools, jax, jax.numpy as jnp
class Model:
    def __init__(self): self.scale = 2
    @functools.partial(jax.jit, static_argnums=0)
    def method(self, x): return x * self.scale
    @classmethod
    @functools.partial(jax.jit, static_argnums=0)
    def of_class(cls, x): return x + 1
    @staticmethod
    @jax.jit
    def static(x): return x + 2
    whole = jax.jit(lambda self, x: x, static_argnums=0)
    __slots__ = ("scale",)
model = Model()
print(model.method(1.0), Model.of_class(1.0), model.static(1.0), model.whole(1.0))
"""),
    Case("donation", "donated arguments are deleted, and only these", """
import jax, jax.numpy as jnp
step = jax.jit(lambda a, b: (a + 1, b), donate_argnums=0)
a, b = jnp.ones(1000), jnp.ones(10)
out, _ = step(a, b)
print(a.is_deleted(), b.is_deleted(), out.is_deleted())
try: a + 1
except (RuntimeError, ValueError) as error: print(str(error)[:30])
""", flags=("-W", "ignore")),
    Case("leaked tracers", "a tracer is kept, and jax.checking_leaks says so", """
import jax, jax.numpy as jnp
kept = []
jax.jit(lambda x: kept.append(x))(1.0)
try: kept[0] + 1
except jax.errors.UnexpectedTracerError: print("leaked")
kept.clear()
with jax.checking_leaks():
    print(jax.jit(lambda x: x + 1)(1.0))
    try: jax.jit(lambda x: kept.append(x))(1.0)
    except Exception as error: print(str(error)[:20])
"""),
    Case("{functions} functions", "each is compiled once and thrown away", """
import os, jax, jax.numpy as jnp
x = jnp.ones(2)
for number in range({functions}):
    scope = {}
    exec(f"def f{number}(x): return x + 1", scope)
    jax.jit(scope[f"f{number}"])(x)
    if number % 500 == 499: jax.clear_caches()
print({functions})
"""),
    Case("{signatures} signatures of one function", "each call is a compilation", """
import jax, jax.numpy as jnp
step = jax.jit(lambda x, n: x, static_argnums=1)
x = jnp.ones(2)
for number in range({signatures}):
    step(x, number)
    if number % 500 == 499: jax.clear_caches()
print({signatures})
"""),
    Case("an argument of 20,000 leaves", "and a structure that changes in each call", """
import jax, jax.numpy as jnp
step = jax.jit(lambda tree: tree["0"] + 1)
x = jnp.ones(())
for size in (20_000, 19_999): print(step({str(number): x if number < 3 else 1.0 for number in range(size)} if size % 2 else {"0": x}))
lowered = jax.jit(lambda tree: 1.0).lower({str(number): 1.0 for number in range(20_000)})
print(len(jax.tree.leaves(lowered.in_avals)))
jax.jit(lambda tree: 1.0)({str(number): 1.0 for number in range(2_000)})
"""),
)  # fmt: skip
