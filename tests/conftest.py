"""Eight virtual CPU devices for everybody, and our own failures raised instead of swallowed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAXOBS_RAISE_INTERNAL_ERRORS"] = "1"


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing recorded, nothing installed and no failure counted, before the test and after it."""
    from jaxobs import guard, session, store

    def clear() -> None:
        session.uninstall()
        store.current().reset()
        guard.reset()

    clear()
    yield
    clear()
    guard.raise_internal_errors(True)
