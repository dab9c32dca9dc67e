"""Fakes for the tests of those who build on jaxobs: devices whose memory says what a test wants it to say."""

from __future__ import annotations

from jaxobs.testing.devices import FakeArray, FakeClient, FakeDevice, backends

__all__ = ["FakeArray", "FakeClient", "FakeDevice", "backends"]
