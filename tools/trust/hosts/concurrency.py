"""Greenlets, event loops, threads and tracing tools."""

from __future__ import annotations

from tools.trust.case import Case

_GREEN = """
{before}
JAXOBS
import jax, jax.numpy as jnp
{after}
step = jax.jit(lambda x, n: (x * n).sum(), static_argnums=1)
"""
_GEVENT_PATCH = "from gevent import monkey; monkey.patch_all()"
_GEVENT = """
import gevent, gevent.queue, time
done = gevent.queue.Queue()
def work(number):
    time.sleep(0.01)
    done.put(float(step(jnp.ones(number + 1), number)))
gevent.joinall([gevent.spawn(work, number) for number in range(5)])
print(sorted(done.get() for _ in range(5)))
"""
_EVENTLET_PATCH = "import eventlet; eventlet.monkey_patch()"
_EVENTLET = """
pool = eventlet.GreenPool()
print(list(pool.imap(lambda number: float(step(jnp.ones(number + 1), number)), range(5))))
"""


def _green(patch: str, body: str, late: bool) -> str:
    return _GREEN.format(before="" if late else patch, after=patch if late else "") + body


CASES = (
    Case("gevent first", "threads and locks are greenlets before jaxobs starts",
         _green(_GEVENT_PATCH, _GEVENT, False), needs=("gevent",), flags=("-W", "ignore")),
    Case("gevent late", "threads and locks become greenlets under jaxobs",
         _green(_GEVENT_PATCH, _GEVENT, True), needs=("gevent",), flags=("-W", "ignore")),
    Case("eventlet first", "threads and locks are greenlets before jaxobs starts",
         _green(_EVENTLET_PATCH, _EVENTLET, False), needs=("eventlet",), flags=("-W", "ignore"),
         prefix=r"-?\d+ RLock\(s\) were not greened.*"),
    Case("eventlet late", "threads and locks become greenlets under jaxobs",
         _green(_EVENTLET_PATCH, _EVENTLET, True), needs=("eventlet",), flags=("-W", "ignore"),
         prefix=r"-?\d+ RLock\(s\) were not greened.*"),  # eventlet counts all locks of the process
    Case("uvloop", "an event loop of its own, with jit in coroutines", """
import asyncio, uvloop, jax, jax.numpy as jnp
step = jax.jit(lambda x: (x * 2).sum())
async def work(number):
    await asyncio.sleep(0.001 * number)
    return float(await asyncio.to_thread(step, jnp.ones(number + 1)))
async def main(): print(await asyncio.gather(*(work(number) for number in range(8))))
uvloop.install() if not hasattr(uvloop, "run") else None
(uvloop.run if hasattr(uvloop, "run") else asyncio.run)(main())
""", needs=("uvloop",)),
    Case("asyncio in debug mode", "slow callbacks and unawaited coroutines are reported", """
import asyncio, jax, jax.numpy as jnp
step = jax.jit(lambda x: (x * 2).sum())
async def work(number):
    await asyncio.sleep(0)
    return float(step(jnp.ones(number + 1)))
async def main():
    asyncio.get_running_loop().slow_callback_duration = 60
    print(await asyncio.gather(*(work(number) for number in range(8))))
asyncio.run(main(), debug=True)
""", flags=("-W", "error::RuntimeWarning")),
    Case("async with and jit", "compilations inside asynchronous context managers and generators", """
import asyncio, contextlib, jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
@contextlib.asynccontextmanager
async def opened():
    yield step(jnp.zeros(2))
    step(jnp.zeros(3))
async def batches():
    for size in (4, 5, 6):
        await asyncio.sleep(0)
        yield step(jnp.zeros(size))
async def main():
    async with opened() as first:
        print(first, [batch.shape async for batch in batches()])
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.to_thread(step, jnp.zeros(7))) for _ in range(3)]
    print([task.result().shape for task in tasks])
asyncio.run(main())
"""),
    Case("pdb with typed commands", "a debugger owns tracing and standard input", """
import jax, jax.numpy as jnp
def body(x):
    return x * 2
step = jax.jit(body)
print(step(jnp.ones(2)))
""", given=("-m", "pdb", "{program}"), stdin="break 4\ncontinue\nwhere 1\nup\ncontinue\nquit\n",
         prefix=r""),
    Case("sys.settrace", "each line of the program is traced", """
import sys, jax, jax.numpy as jnp
lines = []
def traced(frame, event, argument):
    if frame.f_code.co_filename == __file__: lines.append((event, frame.f_lineno))
    return traced
def body(x): return x + 1
step = jax.jit(body)
sys.settrace(traced)
def run():
    step(jnp.ones(2))
    step(jnp.ones(3))
run()
print(sys.gettrace() is traced)
sys.settrace(None)
print(lines)
"""),
    Case("sys.setprofile and threading.setprofile", "each call of each thread is profiled", """
import sys, threading, jax, jax.numpy as jnp
calls = []
def profiled(frame, event, argument):
    if frame.f_code.co_filename == __file__ and event == "call": calls.append(frame.f_code.co_name)
def body(x): return x + 1
step = jax.jit(body)
def run(): step(jnp.ones(2))
threading.setprofile(profiled); sys.setprofile(profiled)
run()
thread = threading.Thread(target=run); thread.start(); thread.join()
print(sys.getprofile() is profiled)
sys.setprofile(None); threading.setprofile(None)
print(calls)
"""),
    Case("sys.monitoring, all tools taken", "the program has every number for tools that there is", """
import sys, jax, jax.numpy as jnp
seen = []
for number in range(6):
    if sys.monitoring.get_tool(number) is None: sys.monitoring.use_tool_id(number, f"tool {number}")
own = [number for number in range(6) if (sys.monitoring.get_tool(number) or "").startswith("tool ")]
sys.monitoring.register_callback(own[0], sys.monitoring.events.RAISE, lambda code, offset, error: seen.append(code.co_name))
sys.monitoring.set_events(own[0], sys.monitoring.events.RAISE)
def body(x): raise ValueError("no")
try: jax.jit(body)(jnp.ones(2))
except ValueError as error: print(error)
sys.monitoring.set_events(own[0], 0)
print("body" in seen, 1 in own, 0 in own)
""", python="3.12"),
    Case("coverage", "lines and branches are counted", """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
for size in range(1, 4):
    print(step(jnp.ones(size)))
""", given=("-m", "coverage", "run", "--data-file=coverage-data", "--branch", "{program}"), needs=("coverage",)),
    Case("cProfile", "a deterministic profiler", """
import cProfile, pstats, io, jax, jax.numpy as jnp
def body(x): return x + 1
step = jax.jit(body)
with cProfile.Profile() as profile:
    for size in range(1, 4): step(jnp.ones(size))
stats = pstats.Stats(profile, stream=io.StringIO()).stats
print([calls[0] for (file, line, name), calls in stats.items() if name == "body"])
"""),
    Case("tracemalloc", "each allocation is traced, ours too", """
import tracemalloc
import jax, jax.numpy as jnp
tracemalloc.start(10)
step = jax.jit(lambda x: x + 1)
for size in range(1, 6): step(jnp.ones(size))
print(tracemalloc.is_tracing(), tracemalloc.take_snapshot() is not None)
"""),
    Case("faulthandler and a fatal signal", "the process dies of SIGSEGV, with all stacks written", """
import faulthandler, os, signal, sys, jax, jax.numpy as jnp
faulthandler.enable(file=open(os.devnull, "w"))
print(jax.jit(lambda x: x + 1)(jnp.ones(2)), flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""),
    Case("faulthandler's watchdog", "stacks are dumped while jit runs, then the process ends", """
import faulthandler, os, time, jax, jax.numpy as jnp
faulthandler.dump_traceback_later(3600, exit=True)
print(jax.jit(lambda x: x + 1)(jnp.ones(2)), flush=True)
faulthandler.cancel_dump_traceback_later()
faulthandler.dump_traceback_later(0.2, exit=True, file=open(os.devnull, "w"))
time.sleep(30)
"""),
    Case("jit under 16 threads", "threads compile one function at one time", """
import threading, jax, jax.numpy as jnp
step = jax.jit(lambda x: (x * 2).sum())
results, start = [None] * 16, threading.Barrier(16)
def work(number):
    start.wait()
    results[number] = float(step(jnp.ones(number % 4 + 1)))
threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print(results)
"""),
    Case("tiny switch interval", "threads change every microsecond", """
import sys, threading, jax, jax.numpy as jnp
sys.setswitchinterval(1e-6)
step = jax.jit(lambda x: (x * 2).sum())
results = {}
def work(number): results[number] = [float(step(jnp.ones(size))) for size in range(1, 5)]
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print(sorted(results.items()))
"""),
    Case("sys.exit in threads", "threads end by SystemExit and by errors", """
import sys, threading, jax, jax.numpy as jnp
threading.excepthook = lambda details: print("hook", details.exc_type.__name__)
step = jax.jit(lambda x: x + 1)
def leaves(): step(jnp.ones(2)); sys.exit(3)
def fails(): step(jnp.ones(3)); raise LookupError("no")
for target in (leaves, fails):
    thread = threading.Thread(target=target); thread.start(); thread.join()
print("main goes on")
sys.exit(4)
"""),
    Case("daemon threads at exit", "threads are inside jit when the interpreter ends", """
import threading, time, jax, jax.numpy as jnp
step = jax.jit(lambda x: (x @ x).sum())
started = threading.Event()
def work():
    while True:
        step(jnp.ones((50, 50))); started.set()
for _ in range(3): threading.Thread(target=work, daemon=True).start()
started.wait(); time.sleep(0.1)
print("the end", flush=True)
""", shell='"$@" 2>/dev/null || test $? -eq 134'),  # JAX aborts in most runs: its threads find the interpreter gone.
    Case("a thread that outlives main", "the interpreter waits for a thread that compiles late", """
import threading, time, jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
def late():
    time.sleep(0.3)
    print(step(jnp.ones(2)))
threading.Thread(target=late).start()
print("main is through")
"""),
    Case("generators and jit", "compilations in generators that are closed, thrown into and left", """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
def batches():
    try:
        for size in range(1, 9): yield step(jnp.ones(size))
    except KeyError:
        yield step(jnp.ones(20))
    finally:
        print("closed", step(jnp.ones(10)).shape)
first = batches(); print(next(first).shape); first.close()
second = batches(); next(second); print(second.throw(KeyError()).shape); second.close()
third = batches(); next(third); del third
print("end")
"""),
    Case("context variables", "each task has its own, and jit sees none of ours", """
import asyncio, contextvars, jax, jax.numpy as jnp
name = contextvars.ContextVar("name", default="none")
step = jax.jit(lambda x: x + 1)
async def work(own):
    name.set(own); await asyncio.sleep(0); step(jnp.ones(len(own)))
    return name.get()
async def main(): print(await asyncio.gather(*map(work, ("a", "bb", "ccc"))), name.get())
asyncio.run(main())
print(sorted(each.name for each in contextvars.copy_context() if each is name))
"""),
)  # fmt: skip
