"""NVIDIA's management library without NVIDIA: a `libnvidia-ml.so.1` that is built here and answers as it is told.

The real `pynvml` talks to it, in this process or in another:

nvml = FakeNvml(folder)
nvml.device(0, uuid="GPU-aaaa", name="Fake H100", power=350_000, memory__used=2**30, memory__total=80 * 2**30)
with nvml:
    ...                      # whoever imports pynvml here sees one device
    nvml.device(0, lost=15)  # and now it has fallen off the bus

What is not named is "not supported". Keys, and how errors and hangs are written, stand in `fake_nvml.c`.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
SOURCE = pathlib.Path(__file__).with_name("fake_nvml.c")


def build(folder: str | os.PathLike[str]) -> pathlib.Path:
    """Compiles the library into a folder; whatever is there under its name already is taken.

    Raises:
      FileNotFoundError: there is no C compiler.
    """
    library = pathlib.Path(folder) / LIBRARY
    if not library.exists():
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            raise FileNotFoundError("No C compiler: `cc` is not on the path. On Debian: apt-get install gcc")
        library.parent.mkdir(parents=True, exist_ok=True)
        begun = library.with_suffix(f".{os.getpid()}")
        options = ["-shared", "-fPIC", "-O1", f"-Wl,-soname,{LIBRARY}"]
        subprocess.run([compiler, *options, "-o", str(begun), str(SOURCE)], check=True)
        begun.replace(library)
    return library


class FakeNvml:
    """The library and the file that it answers from. As a context: what `pynvml` talks to in this process."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Builds the library in `folder` unless it is there, with no device and a loaded driver."""
        self.library = build(folder)
        self._state = pathlib.Path(folder) / "nvml.txt"
        self._values: dict[str, str] = {"driver": "570.86.10", "count": "0"}
        self._before: tuple[Any, dict[str, Any]] | None = None
        self._write()

    def set(self, **values: Any) -> None:
        """Of the whole library: `init="error 9"`, `driver`. Two underscores stand for a dot; None takes it away."""
        self._put("", values)

    def device(self, index: int | str, **values: Any) -> None:
        """Of one device, or of a MIG instance (`"0/1"`), in NVML's own units; the device is made if need be."""
        if isinstance(index, int):
            self._values["count"] = str(max(int(self._values["count"]), index + 1))
        self._put(f"{index}.", values)

    def field(self, index: int | str, field: int, value: Any, *, scope: int = 0) -> None:
        """A field value of a device, by NVML's number; the scope of NVLink fields is the link."""
        self._put(f"{index}.", {f"field.{field}.{scope}": value})

    def environment(self) -> dict[str, str]:
        """Variables with which another process sees this library instead of the real one."""
        known = os.environ.get("LD_LIBRARY_PATH", "")
        folders = f"{self.library.parent}:{known}" if known else str(self.library.parent)
        return {"LD_LIBRARY_PATH": folders, "FAKE_NVML_STATE": str(self._state)}

    def _put(self, prefix: str, values: dict[str, Any]) -> None:
        for name, value in values.items():
            key = prefix + name.replace("__", ".")
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = str(value)
        self._write()

    def _write(self) -> None:
        begun = self._state.with_suffix(".new")
        begun.write_text("".join(f"{key} {value}\n" for key, value in self._values.items()), encoding="utf-8")
        begun.replace(self._state)

    def __enter__(self) -> FakeNvml:
        import pynvml

        self._before = pynvml.nvmlLib, dict(pynvml._nvmlGetFunctionPointer_cache)
        library = ctypes.CDLL(str(self.library))
        library.fake_nvml_state(str(self._state).encode())
        # pynvml keeps the first library that it loads, and its functions: put ours in their place.
        pynvml.nvmlLib = library
        pynvml._nvmlGetFunctionPointer_cache.clear()
        return self

    def __exit__(self, *error: object) -> None:
        import pynvml

        assert self._before is not None
        pynvml.nvmlLib = self._before[0]
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml._nvmlGetFunctionPointer_cache.update(self._before[1])
