"""Names of other releases, and names that are misspelt."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import TRACEBACK, said

from jaxobs.ops.diagnosis.result import CAUSE

INSTALLED = "/v/lib/python3.12/site-packages/jax"


@pytest.mark.parametrize(
    "error",
    [
        "AttributeError: module 'jax' has no attribute 'tree_map'",
        "AttributeError: module 'jax' has no attribute 'tree_map'. Did you mean: 'tree_util'?",
        f"ImportError: cannot import name 'shard_map' from 'jax.experimental' ({INSTALLED}/experimental/__init__.py)",
        f"ImportError: cannot import name 'linear_util' from 'jax' ({INSTALLED}/__init__.py)",
        f"ImportError: cannot import name 'hidden' from 'jax._src.core' ({INSTALLED}/_src/core.py)",
        "AttributeError: module 'jax.numpy' has no attribute 'DeviceArray'",
        "AttributeError: module 'jax.core' has no attribute 'ConcreteArray'",
        "AttributeError: module 'jax.random' has no attribute 'KeyArray'",
        "AttributeError: module 'jax.lib' has no attribute 'xla_bridge'",
        "ModuleNotFoundError: No module named 'jax.config'",
        "ModuleNotFoundError: No module named 'jax.experimental.maps'",
        "AttributeError: Unrecognized config option: jax_pmap_shmap_merge",
        "AttributeError: 'ArrayImpl' object has no attribute 'device_buffer'",
        "TypeError: shard_map() got an unexpected keyword argument 'check_rep'",
        "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
        "AttributeError: module 'numpy' has no attribute 'bool'.\n`np.bool` was a deprecated alias for `bool`.",
        "AttributeError: module 'numpy' has no attribute 'product'",
        "ModuleNotFoundError: No module named 'numpy._core'",
    ],
)
def test_a_name_of_another_release(tmp_path: Path, error: str) -> None:
    """The program itself asks for it: it was written for another release."""
    assert said(tmp_path, f"{TRACEBACK}{error}\n") == (CAUSE, ["library_mismatch"])


@pytest.mark.parametrize(
    "error",
    [
        "AttributeError: module 'jax' has no attribute 'jitt'",
        "AttributeError: module 'jax._src.core' has no attribute 'Jaxprr'. Did you mean: 'Jaxpr'?",
        "ModuleNotFoundError: No module named 'jax.nump'",
        "ImportError: cannot import name 'shard_map' from 'jax' (/app/jax.py)",
        "AttributeError: module 'jax' has no attribute 'tree' (consider renaming '/app/jax.py' if it has the same "
        "name as a library you intended to import)",
        "AttributeError: partially initialized module 'jax' has no attribute 'tree' (most likely due to a "
        "circular import)",
        f"ImportError: cannot import name 'jitt' from 'jax' ({INSTALLED}/__init__.py)",
        "AttributeError: Unrecognized config option: jax_enable_x46",
        "AttributeError: module 'numpy' has no attribute 'aray'",
        "TypeError: shard_map() got an unexpected keyword argument 'mash'",
        "AttributeError: module 'trees' has no attribute 'tree_map'",
    ],
)
def test_a_name_that_no_release_has(tmp_path: Path, error: str) -> None:
    assert said(tmp_path, f"{TRACEBACK}{error}\n") == (CAUSE, ["program_error"])
