"""Forks, executions, exits and signals."""

from __future__ import annotations

from tools.trust.case import Case

_CHILD = """
def child(number):
    import jax, jax.numpy as jnp
    return float(jax.jit(lambda x: (x * number).sum())(jnp.ones(3)))
"""
_MULTI = (
    _CHILD
    + """
if __name__ == "__main__":
    import multiprocessing, warnings
    warnings.simplefilter("ignore")
    {early}
    context = multiprocessing.get_context("{method}")
    with context.Pool(2) as pool: print(pool.map(child, range(3)))
    process = context.Process(target=child, args=(4,)); process.start(); process.join(60); print(process.exitcode)
"""
)
_FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
{early}
child = os.fork()
if child == 0:
    {body}
    sys.stdout.flush()
    os._exit(5)
print("parent", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
import jax, jax.numpy as jnp
print("parent", jax.jit(lambda x: x + 1)(jnp.ones(2)))
"""
_JIT = 'import jax, jax.numpy as jnp; print("child", jax.jit(lambda x: x + 1)(jnp.ones(2)))'
_SIGNAL = """
import os, signal, sys, time, jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
"""

CASES = (
    Case("fork before JAX", "the child imports JAX, not the parent", _FORK.format(early="", body=_JIT)),
    Case("fork after JAX's import", "no backend yet", _FORK.format(early="import jax", body=_JIT)),
    Case("fork after a compilation", "threads of XLA are gone in the child",
         _FORK.format(early=_JIT.replace("child", "early"), body='print("child")')),
    Case("fork with sys.exit in the child", "the child runs exit handlers", """
import atexit, os, sys, warnings, jax
warnings.simplefilter("ignore")
atexit.register(lambda: print("exit handler", os.getpid() == child_of, flush=True))
child_of = os.getpid()
if os.fork() == 0: sys.exit(7)
print("child", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""),
    Case("fork in a thread, double fork", "a daemon as of old: twice forked, session of its own", """
import os, sys, threading, warnings, jax, jax.numpy as jnp
warnings.simplefilter("ignore")
step = jax.jit(lambda x: x + 1); step(jnp.ones(2))
reading, writing = os.pipe()
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: os.write(writing, b"from the grandchild"); os._exit(0)
        os._exit(0)
    os.wait()
thread = threading.Thread(target=daemon); thread.start(); thread.join()
print(os.read(reading, 100).decode(), step(jnp.ones(3)).shape)
"""),
    Case("multiprocessing: fork", "a pool of forked children", _MULTI.format(method="fork", early=""), processes=4),
    Case("multiprocessing: spawn", "children import the script again",
         _MULTI.format(method="spawn", early="child(1)"), processes=4),
    Case("multiprocessing: forkserver", "children of a server",
         _MULTI.format(method="forkserver", early="child(1)"), processes=4),
    Case("ProcessPoolExecutor", "with an error, and a child that dies", _CHILD + """
def dies(): import os; os._exit(9)
def fails(): raise LookupError("in the child")
if __name__ == "__main__":
    import concurrent.futures, multiprocessing
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        print(list(pool.map(child, range(3))))
        try: pool.submit(fails).result()
        except LookupError as error: print(error)
        try: pool.submit(dies).result()
        except concurrent.futures.process.BrokenProcessPool: print("broken")
""", processes=4),
    Case("subprocesses", "output, exit code and descriptors of children", """
import subprocess, sys, jax, jax.numpy as jnp
jax.jit(lambda x: x + 1)(jnp.ones(2))
done = subprocess.run([sys.executable, "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:4])"],
                      capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
"""),
    Case("os.exec", "the process becomes another program", """
import os, sys, jax, jax.numpy as jnp
print(jax.jit(lambda x: x + 1)(jnp.ones(2)), flush=True)
os.execv(sys.executable, [sys.executable, "-c", "import os; print('another', len(os.listdir('/proc/self/fd')) < 8)"])
"""),
    Case("os._exit", "no exit handler runs", """
import os, jax, jax.numpy as jnp
print(jax.jit(lambda x: x + 1)(jnp.ones(2)), flush=True)
os._exit(11)
"""),
    Case("os.abort", "the process dies of SIGABRT", """
import os, jax, jax.numpy as jnp
print(jax.jit(lambda x: x + 1)(jnp.ones(2)), flush=True)
os.abort()
"""),
    Case("exit handlers in order", "one compiles, one fails, one registers another", """
import atexit, sys, jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1); step(jnp.ones(1))
@atexit.register
def last(): print("last")
@atexit.register
def compiles(): print("compiles", step(jnp.ones(3)))
@atexit.register
def registers(): atexit.register(lambda: print("registered late"))
@atexit.register
def first(): print("first")
sys.exit("a text as exit code")
"""),
    Case("functions of the system that exit", "time, os and threading raise SystemExit once JAX has compiled", """
import logging, os, threading, time, jax, jax.numpy as jnp
logging.getLogger("jaxobs").disabled = True
step = jax.jit(lambda x: x + 1)
step(jnp.ones(3)).block_until_ready()
def ended(*given, **more): raise SystemExit(7)
for module, names in ((os, "close getpid unlink stat"), (threading, "current_thread enumerate"), (time, "perf_counter")):
    for name in names.split(): setattr(module, name, ended)
for size in (4, 5): print(step(jnp.ones(size)))
time.sleep(0.3)
"""),
    Case("an exception at the end", "the traceback, its frames and the exit code", """
import jax, jax.numpy as jnp
def inner(x): return 1 / 0
def outer(x): return jax.jit(inner)(x)
outer(jnp.ones(2))
"""),
    Case("sys.excepthook and a group of exceptions", "the program's own hook, notes and causes", """
import sys, jax, jax.numpy as jnp
def hook(kind, error, traceback): print("hook", kind.__name__, error.__notes__, type(error.__cause__).__name__)
sys.excepthook = hook
def body(x): raise ExceptionGroup("several", [ValueError("a"), KeyError("b")]) from OSError("c")
try: jax.jit(body)(jnp.ones(2))
except* ValueError as group: print(len(group.exceptions))
except* KeyError as group: print(group.exceptions[0])
error = LookupError("end"); error.add_note("a note")
raise error from OSError("why")
"""),
    Case("KeyboardInterrupt, unhandled", "SIGINT while the program waits", _SIGNAL + """
step(jnp.ones(2))
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    time.sleep(20)
finally: print("finally", step(jnp.ones(3)), flush=True)
"""),
    Case("KeyboardInterrupt inside jit", "SIGINT while tracing, caught", _SIGNAL + """
def body(x):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): time.sleep(0.001)
    return x
try: jax.jit(body)(jnp.ones(2))
except KeyboardInterrupt: print("caught")
print(step(jnp.ones(3)))
"""),
    Case("SIGTERM, unhandled", "the process dies of it", _SIGNAL + """
print(step(jnp.ones(2)), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(20)
"""),
    Case("SIGTERM, the program's handler", "it exits with its own code", _SIGNAL + """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
print(step(jnp.ones(2)), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(20)
"""),
    Case("SIGTERM, ignored, then default", "the program sets the handler of SIGTERM twice", _SIGNAL + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGTERM); print(step(jnp.ones(2)), flush=True)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(20)
"""),
    Case("SIGALRM in the middle of compilations", "a timer interrupts every 2 ms", _SIGNAL + """
ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
for size in range(1, 30): step(jnp.ones(size))
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(ticks) > 10, step(jnp.ones(3)))
"""),
    Case("a timeout by SIGALRM that raises", "an exception in the middle of tracing", _SIGNAL + """
class TooLong(Exception): pass
def late(*_): raise TooLong
signal.signal(signal.SIGALRM, late)
def body(x): time.sleep(20); return x
x = jnp.ones(2)
try:
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    jax.jit(body)(x)
except TooLong: print("too long")
print(step(jnp.ones(3)))
"""),
    Case("SIGUSR1 and SIGUSR2 of the program", "jaxobs' signal for captures is the program's", _SIGNAL + """
seen = []
for number in (signal.SIGUSR1, signal.SIGUSR2): signal.signal(number, lambda number, _: seen.append(number.__index__()))
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR2): os.kill(os.getpid(), number); step(jnp.ones(number))
print(seen)
"""),
    Case("signal.set_wakeup_fd", "the program reads signals from a descriptor", _SIGNAL + """
import socket
ours, theirs = socket.socketpair(); theirs.setblocking(False)
signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=True)
signal.signal(signal.SIGTERM, lambda *_: None)
os.kill(os.getpid(), signal.SIGTERM); step(jnp.ones(2))
print(ours.recv(10), signal.set_wakeup_fd(-1) == theirs.fileno())
"""),
    Case("asyncio's signal handlers", "SIGTERM and SIGINT by the loop", _SIGNAL + """
import asyncio
async def main():
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGUSR2): loop.add_signal_handler(number, stopped.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await stopped.wait()
    print(step(jnp.ones(2)))
asyncio.run(main())
"""),
    Case("blocked signals and sigwait", "a thread of the program waits for all signals", _SIGNAL + """
import threading
wanted = {signal.SIGTERM, signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
got = []
thread = threading.Thread(target=lambda: got.append(signal.sigwait(wanted).name)); thread.start()
os.kill(os.getpid(), signal.SIGUSR1)
thread.join(10); print(got, step(jnp.ones(2)))
"""),
    Case("SIGPIPE", "the reader of standard output goes away", _SIGNAL + """
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
step(jnp.ones(2))
for number in range(100_000): print(number)
""", shell='"$@" | head -1', without=()),
    Case("zombies and SIGCHLD", "the program reaps all children, also those it did not start", _SIGNAL + """
reaped = []
def reap(*_):
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0: return
            reaped.append(os.waitstatus_to_exitcode(status))
    except ChildProcessError: pass
signal.signal(signal.SIGCHLD, reap)
for size in range(3):
    if os.fork() == 0: os._exit(size)
    step(jnp.ones(size + 1))
for _ in range(100):
    if len(reaped) >= 3: break
    time.sleep(0.05)
print(sorted(reaped))
""", flags=("-W", "ignore")),
)  # fmt: skip
