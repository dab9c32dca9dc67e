"""A program whose arrays, environment, arguments and text hold markers; prints by which ways data left the process."""

import functools
import os
import pathlib
import shutil
import sys
import urllib.request

import jax
import jax.numpy as jnp
import numpy as np

KINDS = {
    "socket.connect",
    "socket.sendto",
    "socket.sendmsg",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.system",
}
KINDS |= {"os.fork", "os.forkpty", "urllib.Request", "http.client.connect", "os.rename", "os.link", "os.symlink"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
quiet = False


def hear(event: str, arguments: tuple) -> None:
    if quiet:
        return
    if event in KINDS:
        print("left", event, [str(each) for each in arguments if isinstance(each, (str, tuple))], flush=True)
    elif event == "open" and arguments[2] & WRITES and isinstance(arguments[0], str) and arguments[0] != os.devnull:
        print("left open", arguments[0], flush=True)


sys.addaudithook(hear)
import jaxobs  # noqa: E402 - after the hook

handle = jaxobs.start(port=0, **dict(each.split("=") for each in sys.argv[1:] if "=" in each))


@functools.partial(jax.jit, static_argnums=1)
def work(x: jax.Array, static: str) -> jax.Array:  # marker-comment
    return x + 1  # marker-source


word = np.frombuffer(b"marker-array-abc", np.uint8)
for count in (1, 2):
    work(jnp.asarray(np.tile(word, count)), "marker-static")
work(31415926, "marker-static")

quiet = True
for path in ("metrics", "api/v1/snapshot", "api/v1/events", "api/v1/verdict", ""):
    with urllib.request.urlopen(handle.url + path) as answer, open(f"answer-{path.replace('/', '-')}", "wb") as file:
        file.write(answer.read())
for each in pathlib.Path(os.environ["XDG_RUNTIME_DIR"], "jaxobs").iterdir():
    shutil.copy(each, "answer-address")
quiet = False
raise ValueError("marker-exception")
