"""Eight virtual CPU devices for everybody, and our own failures raised instead of swallowed."""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAXOBS_RAISE_INTERNAL_ERRORS"] = "1"
