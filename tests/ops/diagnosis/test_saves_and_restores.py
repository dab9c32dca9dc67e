"""Errors of Orbax when it saves and restores, and which of the causes they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.log_verdicts import STEPS, said

CALLED = """Traceback (most recent call last):
  File "/app/train.py", line 9, in main
    manager.restore(step)
  File "/usr/lib/python3.12/site-packages/orbax/checkpoint/_src/handlers/a_handler.py", line 30, in restore
    raise error
"""
CALLS = """Traceback (most recent call last):
  File "/app/train.py", line 9, in main
    tree = metadata["params"]
"""


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("ValueError: sharding passed to deserialization should be specified, concrete. Got None", "sharding_mismatch"),
        ("ValueError: Cannot serialize host local jax.Array (a, b) in multi-host setting.", "sharding_mismatch"),
        ("ValueError: Device cuda:0 was not found in jax.local_devices().", "sharding_mismatch"),
        ("ValueError: process_index 4 does not exist in provided `global_mesh`", "sharding_mismatch"),
        ("ValueError: Item state was not found in the directory", "checkpoint_damaged"),
        ("ValueError: Process metadata folder was not finalized at /local/8.", "checkpoint_damaged"),
        ("OSError: Failed to read metadata from /ckpt/8/_METADATA", "checkpoint_damaged"),
        ("ValueError: Missing 3 keys in structure path ('params',), including: ['a']", "checkpoint_mismatch"),
        ("ValueError: File gs://b/iter/process_9-of-16.json does not exist.", "checkpoint_mismatch"),
        ("ValueError: File gs://b/iter/process_9.json does not exist.", "checkpoint_damaged"),
        ("ValueError: restore produced a leaf with an unexpected shape: leaf=a", "checkpoint_mismatch"),
        ("ValueError: Saved and current process metadata are not compatible with it", "checkpoint_mismatch"),
        ("orbax.checkpoint.errors.StepAlreadyExistsError: Step 8 already exists.", "checkpoint_path"),
        ("FileExistsError: File collision on /ckpt/8/d during finalize.", "checkpoint_path"),
        ("ValueError: Failed to resolve step metadata of checkpoint path with NameFormat=a", "checkpoint_path"),
        ("ValueError: Timeout must be positive, but got 0 seconds.", "program_error"),
        ("ValueError: Must provide ArrayRestoreArgs to restore as jax.Array.", "program_error"),
    ],
)
def test_what_orbax_raises(tmp_path: Path, error: str, cause: str) -> None:
    """An argument that is wrong is an error of the program; the others are about the checkpoint."""
    assert said(tmp_path, f"{STEPS}{CALLED}{error}\n") == ("cause", [cause])


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("TypeError: 'StepMetadata' object is not subscriptable", "library_mismatch"),
        ("TypeError: 'TreeMetadata' object is not iterable", "library_mismatch"),
        ("TypeError: 'RunMetadata' object is not subscriptable", "program_error"),
        ("TypeError: 'NoneType' object is not subscriptable", "program_error"),
    ],
)
def test_metadata_of_another_release(tmp_path: Path, error: str, cause: str) -> None:
    """Only Orbax's own records are."""
    assert said(tmp_path, f"{STEPS}{CALLS}{error}\n") == ("cause", [cause])
