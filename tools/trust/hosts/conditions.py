"""Processes that may not do or have things, and ways to start Python."""

from __future__ import annotations

from tools.trust.case import Case

_STEP = """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
print(step(jnp.ones(2)), flush=True)
"""

CASES = (
    Case("descriptors exhausted", "no file or socket can be opened", _STEP + """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = []
try:
    while True: kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error: print(error.strerror)
print([step(jnp.ones(size)).shape for size in range(3, 6)])
for each in kept: os.close(each)
"""),
    Case("a few descriptors from the start", "the limit is 40", _STEP, shell='ulimit -n 40; exec "$@"'),
    Case("memory exhausted", "150 MiB of address space are left, then none", _STEP + """
import resource, numpy as np
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 150 * 2**20, resource.RLIM_INFINITY))
kept = []
try:
    while True: kept.append(np.empty(2**20, np.uint8))
except MemoryError: print("exhausted")
kept.clear()
print(step(jnp.ones(3)))
"""),
    Case("no new thread", "threads cannot be started", _STEP + """
import threading, _thread
def refuses(*_, **__): raise RuntimeError("can't start new thread")
real = _thread.start_new_thread
_thread.start_new_thread = threading._start_new_thread = threading._start_joinable_thread = refuses
try: threading.Thread(target=print).start()
except RuntimeError as error: print(error)
print([step(jnp.ones(size)).shape for size in range(3, 6)])
"""),
    Case("a full disk for files", "event log, metrics and recorder go to /dev/full", _STEP,
         environment=(("JAXOBS_EVENT_LOG", "/dev/full"), ("JAXOBS_METRICS_FILE", "/dev/full/metrics.prom")),
         prefix=r"jaxobs failed in `(event_log|metrics_file)` .*|.*(event log|/dev/full).*"),
    Case("a full disk for standard output", "the program's own error is Python's", _STEP,
         shell='"$@" > /dev/full', prefix=""),
    Case("file sizes limited", "no file may be larger than 3,000 bytes", _STEP + """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
shapes = [step(jnp.ones(size)).shape for size in range(3, 6)]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(shapes)
""", environment=(("JAXOBS_EVENT_LOG", "{folder}/events.jsonl"),), prefix=r"jaxobs failed in `event_log` .*|.*event log.*"),
    Case("standard streams closed", "descriptors 0 to 2 are closed from the start", """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: x + 1)
step(jnp.ones(2))

import os
os.write(os.open("out", os.O_CREAT | os.O_WRONLY), b"whole")
""", shell='"$@" <&- >&- 2>&-; echo $?; cat out'),
    Case("all descriptors closed by the program", "and files of its own have their numbers then", _STEP + """
import os, signal, time
step(jnp.ones(3))
time.sleep(1)
os.closerange(3, 256)
files = [open(f"own{number}", "w+b", buffering=0) for number in range(30)]
signal.signal(signal.SIGALRM, lambda *given: None)
for number in range(4): step(jnp.ones(number + 1))
time.sleep(1)
signal.raise_signal(signal.SIGALRM)
print([os.path.getsize(f"own{number}") for number in range(30)])
for file in files: file.write(b"mine"); file.seek(0); assert file.read() == b"mine"; file.close()
"""),
    Case("the program has modules named as Python's", "they lie in its folder, and say so if somebody imports them", _STEP + """
import pathlib, sys, time
folder = pathlib.Path(__file__).resolve().parent
for name in sys.stdlib_module_names - set(sys.modules) - {"antigravity", "this"}:
    (folder / f"{name}.py").write_text("print('imported', __name__)")
sys.path.insert(0, str(folder))
for number in range(4): step(jnp.ones(number + 1))
def fails(x): return missing + x
try: jax.jit(fails)(1.0)
except NameError as error: print(error)
time.sleep(1.5)
"""),
    Case("standard streams closed by the program", "sys.stdout and sys.stderr go away, then are rubbish", _STEP + """
import sys
out = sys.stdout
sys.stdout = sys.stderr = None
step(jnp.ones(3))
class Rubbish:
    def write(self, text): raise SystemExit("write")
    def flush(self): raise SystemExit("flush")
    def __getattr__(self, name): raise SystemExit(name)
sys.stderr = Rubbish()
step(jnp.ones(4))
sys.stdout, sys.stderr = out, sys.__stderr__
print("end")
"""),
    Case("-O -I -W error", "optimized, isolated, warnings are errors", _STEP, flags=("-O", "-I", "-W", "error")),
    Case("-OO -B -s -E", "no docstrings, no bytecode, no user site, no environment", _STEP, flags=("-OO", "-B", "-s", "-E")),
    Case("-X dev", "development mode: allocators checked, resources reported", _STEP, flags=("-X", "dev", "-W", "ignore::ImportWarning")),
    Case("warnings as errors by the program", "each thread's too", _STEP + """
import gc, warnings
warnings.simplefilter("error")
print([step(jnp.ones(size)).shape for size in range(3, 6)]); gc.collect()
"""),
    Case("a home that can't be written", "HOME and XDG_RUNTIME_DIR are /proc", _STEP,
         environment=(("HOME", "/proc"), ("XDG_RUNTIME_DIR", "/proc"), ("TMPDIR", "/proc"))),
    Case("the working directory is gone", "relative paths lead nowhere", """
import os, shutil, tempfile
folder = tempfile.mkdtemp(); os.chdir(folder); shutil.rmtree(folder)
""" + _STEP),
    Case("locale C, ASCII streams", "no UTF-8 anywhere", _STEP,
         environment=(("LC_ALL", "C"), ("LANG", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0"), ("PYTHONIOENCODING", "ascii"))),
    Case("an odd locale", "the program sets one that does not exist, then C", _STEP + """
import locale
try: locale.setlocale(locale.LC_ALL, "xx_XX")
except locale.Error as error: print(error)
print(locale.setlocale(locale.LC_ALL, "C"), step(jnp.ones(3)))
"""),
    Case("time.time patched", "clocks of the program jump by years, backwards too", """
import time
real, jumps = time.time, iter(range(10**6))
JAXOBS
time.time = lambda: real() + (-1) ** next(jumps) * 1e9
time.monotonic = time.perf_counter = lambda: 42.0
""" + _STEP + """
print([step(jnp.ones(size)).shape for size in range(3, 6)])
"""),
    Case("time.sleep patched", "the program's time does not pass", """
import time
time.sleep = lambda seconds: None
""" + _STEP),
    Case("faketime", "the clock of the system is in 1999", _STEP, shell='faketime -f "@1999-12-31 23:59:58" "$@"',
         needs=("faketime",)),
    Case("huge recursion", "the limit is reached inside jit", _STEP + """
import sys
def deep(x): return deep(x) + 1
try: jax.jit(deep)(jnp.ones(2))
except RecursionError: print("recursion")
sys.setrecursionlimit(5000)
def down(n, x): return x if n == 0 else down(n - 1, x) + 0
print(jax.jit(lambda x: down(300, x))(1.0), step(jnp.ones(3)).shape)
"""),
    Case("a low recursion limit", "a call near the limit's end compiles", _STEP + """
import sys
def near(n): return near(n - 1) if n else step(jnp.ones(3)).shape
print(near(500))
depths = []
for room in range(60, 100, 10):
    try:
        sys.setrecursionlimit(room + 30)
        jax.jit(lambda x: x * 2)(1.0)
    except RecursionError: depths.append("RecursionError")
    finally: sys.setrecursionlimit(1000)
print(set(depths) <= {"RecursionError"}, step(jnp.ones(4)).shape)
"""),
    Case("odd sys.argv and __main__", "the program deletes and replaces them", """
import sys
print(sys.argv[1:], __name__, __spec__ is None, __file__.endswith("program.py"), __package__)
sys.argv = ["\\udcff\\n", "x" * 10**6]
sys.modules["__main__"] = None
""" + _STEP, arguments=("--port", "-h", "--", "", "\u00e9\n")),
    Case("python -c", "no file, no source", _STEP, given=("-c", "{source}"), without=("run",)),
    Case("a script from standard input", "`python -`", _STEP + "\nimport sys; print(sys.argv)\n", given=("-",), stdin="{source}"),
    Case("a zipped application", "__main__.py in an archive", _STEP + "\nprint(__name__)\n", given=("{zip}",)),
    Case("python -m of a package", "a module with relative imports", _STEP + "\nprint(__name__, __package__, __spec__.name)\n",
         given=("-m", "host_package"), shell='cd {folder} && exec "$@"'),
    Case("python -i", "interactive after the script", _STEP, flags=("-i", "-q"), stdin="print(step(jnp.ones(3)))\n",
         without=("run",)),
    Case("bytecode without source", "a .pyc is run", _STEP, given=("{pyc}",)),
    Case("gc.disable and gc.freeze", "no collection, with callbacks of the program", _STEP + """
import gc
phases = []
gc.callbacks.append(lambda phase, details: phases.append(phase))
gc.disable(); gc.freeze()
[step(jnp.ones(size)) for size in range(3, 6)]
print(gc.isenabled(), len(phases), len(gc.callbacks) >= 1); gc.collect(); print(phases)
"""),
    Case("gc at each allocation", "collections in the middle of everything", _STEP + """
import gc
gc.set_threshold(1, 1, 1)
print([step(jnp.ones(size)).shape for size in range(3, 12)])
"""),
    Case("logging that raises", "handlers and filters fail, the root logger has level 1", """
import logging, sys
logging.raiseExceptions = True
""" + _STEP + """
class Fails(logging.Handler):
    def emit(self, record):
        if record.name.startswith("jaxobs"): raise SystemExit("emit")
logging.getLogger().addHandler(Fails()); logging.getLogger().setLevel(1)
jax.config.update("jax_log_compiles", False)
logging.disable(logging.NOTSET)
print(step(jnp.ones(3)))
"""),
    Case("logging configured again", "existing loggers are disabled, output is JSON", _STEP + """
import logging, logging.config
logging.config.dictConfig({"version": 1, "disable_existing_loggers": True,
    "handlers": {"out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}}, "root": {"handlers": ["out"], "level": "WARNING"}})
print(step(jnp.ones(3))); logging.warning("own")
"""),
    Case("import hooks", "modules that JAX and Python need later can't be imported any more", _STEP + """
import sys
class Refuses:
    def find_spec(self, name, path=None, target=None): raise ImportError(f"no {name}")
sys.meta_path.insert(0, Refuses())
print(step(jnp.ones(3)).shape, step(jnp.ones(4)).shape)
sys.meta_path.pop(0)
"""),
    Case("sys.modules emptied of ours", "the program reloads modules", _STEP + """
import importlib, sys
for name in [each for each in sys.modules if each.partition(".")[0] in ("jaxobs", "prometheus_client")]: del sys.modules[name]
importlib.invalidate_caches()
print(step(jnp.ones(3)))
"""),
    Case("audit hooks", "the program refuses sockets, subprocesses and ctypes", _STEP + """
import sys
def hook(event, given):
    if event.partition(".")[0] in ("socket", "subprocess", "ctypes", "os.system"): raise PermissionError(event)
sys.addaudithook(hook)
print([step(jnp.ones(size)).shape for size in range(3, 6)])
""", without=("start", "run")),
    Case("a prometheus registry of the program", "its own metrics have the names of ours", _STEP + """
import prometheus_client
prometheus_client.Counter("jax_compilations", "The program's own.").inc()
prometheus_client.REGISTRY.register(prometheus_client.CollectorRegistry()) if False else None
print(b"jax_compilations_total 1.0" in prometheus_client.generate_latest(), step(jnp.ones(3)).shape)
"""),
    Case("subinterpreters", "JAX is used in one after the other", """
import jax, jax.numpy as jnp
import _xxsubinterpreters as interpreters
print(jax.jit(lambda x: x + 1)(jnp.ones(2)))
other = interpreters.create()
interpreters.run_string(other, "import sys; print('another interpreter', 'jax' in sys.modules)")
interpreters.destroy(other)
print(jax.jit(lambda x: x + 2)(jnp.ones(2)))
""", python="3.12"),
    Case("a build without the GIL", "16 threads compile and call at one time, for real", """
import sys, threading, jax, jax.numpy as jnp
step, results, start = jax.jit(lambda x: (x * 2).sum()), {}, threading.Barrier(16)
def work(number):
    start.wait()
    own = jax.jit(lambda x: x + number)
    results[number] = [float(step(own(jnp.ones(number % 4 + 1)))) for _ in range(200)][-1]
threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print(sys._is_gil_enabled(), sorted(results.items()))
""", python="3.13t"),
    Case("JAX's newest release", "on the newest Python", _STEP + """
print([step(jnp.ones(size)).shape for size in range(3, 6)])
""", python="3.13"),
)  # fmt: skip
