"""The extension for IPython and Jupyter: `%load_ext jaxobs`. IPython is optional: nothing here imports it."""

from typing import Any

from jaxobs.session.notebook.extension import Extension

_loaded: list[Extension] = []


def load_ipython_extension(shell: Any) -> None:
    """Observes this process, and adds `%%jaxobs` and `%jaxobs`: IPython calls it for `%load_ext jaxobs`."""
    if not _loaded:
        extension = Extension(shell)
        extension.load()
        _loaded.append(extension)


def unload_ipython_extension(shell: Any) -> None:
    """Restores IPython, for `%unload_ext jaxobs`; what was recorded stays readable."""
    while _loaded:
        _loaded.pop().unload()
