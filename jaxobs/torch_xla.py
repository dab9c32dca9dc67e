"""PyTorch/XLA under observation.

    import jaxobs.torch_xla

    jaxobs.torch_xla.install()

Torch and torch_xla are the program's to import, before or after; JAX is not needed.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from jaxobs.base.errors import JaxobsError
from jaxobs.session import lifecycle

if TYPE_CHECKING:
    from typing import Unpack

    from jaxobs.base.settings_types import InstallSettings

__all__ = ["install"]


def install(**settings: Unpack[InstallSettings]) -> None:
    """Observes as `jaxobs.install`, which sees torch_xla as well, but says so where torch_xla is not installed.

    Raises:
      JaxobsError: this Python has no torch_xla.
      SettingError: as for `jaxobs.install`.
    """
    if importlib.util.find_spec("torch_xla") is None:
        raise JaxobsError("`jaxobs.torch_xla` needs `torch_xla`. Install it with: pip install torch torch_xla")
    lifecycle.install(**settings)
