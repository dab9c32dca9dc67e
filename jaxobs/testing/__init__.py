"""For tests: a bound on compilations, and fakes of devices whose memory says what a test wants it to say."""

from __future__ import annotations

from jaxobs.testing.compiles import TooManyCompilesError, max_compiles
from jaxobs.testing.devices import FakeArray, FakeClient, FakeDevice, backends

__all__ = ["FakeArray", "FakeClient", "FakeDevice", "TooManyCompilesError", "backends", "max_compiles"]
