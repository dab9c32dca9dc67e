"""The extension for IPython and Jupyter: `%load_ext jaxobs`. IPython is no requirement, and nothing here imports it."""

from __future__ import annotations

from typing import Any

from jaxobs.session.notebook.extension import Extension

_loaded: list[Extension] = []


def load_ipython_extension(shell: Any) -> None:
    """For `%load_ext jaxobs`: observes this process, and adds `%%jaxobs` and `%jaxobs`."""
    if not _loaded:
        extension = Extension(shell)
        extension.load()
        _loaded.append(extension)


def unload_ipython_extension(shell: Any) -> None:
    """For `%unload_ext jaxobs`: IPython is as before; what was recorded stays readable."""
    while _loaded:
        _loaded.pop().unload()
