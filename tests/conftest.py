"""Eight virtual CPU devices for everybody, and our own failures raised instead of swallowed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from quick_xla import quick

os.environ["XLA_FLAGS"] = quick(*os.environ.get("XLA_FLAGS", "").split(), "--xla_force_host_platform_device_count=8")
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
