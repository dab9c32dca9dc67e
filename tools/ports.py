"""Ports for programs that must be told one."""

from __future__ import annotations

import random
import socket

_NEVER_GIVEN_OUT = range(15_000, 32_768)
"""Linux gives out higher ones for port 0 and outgoing connections: one found free there may be taken a moment later."""


def free_port() -> int:
    """A port of the loopback interface on which nobody listens."""
    choose = random.SystemRandom()
    for _ in range(1000):
        port = choose.choice(_NEVER_GIVEN_OUT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
