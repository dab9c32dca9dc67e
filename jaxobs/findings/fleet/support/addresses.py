"""Addresses at which the processes of a job answer HTTP: this one's as others can reach it, the others' as they told.

No packet is sent to find the own address: a datagram socket that is connected to another host has the address of the
interface that leads there.
"""

import contextlib
import platform
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from jaxobs.base.callers import is_loopback

ELSEWHERE = "192.0.2.1"
"""An address that nobody has (RFC 5737): the interface that leads there is that of the default route."""

_EVERY = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Address:
    """The endpoint of one process."""

    host: str
    """The name of the machine, as it calls itself."""
    address: str
    """`host:port`; empty where it serves none."""

    @property
    def for_itself_alone(self) -> bool:
        """Whether only processes on the same machine can reach it."""
        return is_loopback(self.address.rpartition(":")[0].strip("[]"))


class Addresses:
    """A part of the store. Threads may write and read at the same time."""

    def __init__(self) -> None:
        self._open: dict[int, str] = {}
        """Hosts that the endpoints listen on, by port; the latest comes last."""
        self._reached: tuple[str | None, str] | None = None
        self.scheme = "http"
        """Scheme of this process's latest endpoint; those of a job have the same settings."""
        self.others: Mapping[int, Address] = {}

    def opened(self, addr: str, port: int) -> None:
        """An endpoint listens from now on."""
        self._open.pop(port, None)
        self._open[port] = addr

    def closed(self, port: int) -> None:
        """Forgets the endpoint on a port."""
        self._open.pop(port, None)

    def heard(self, others: Mapping[int, Address]) -> None:
        """Takes in what other processes told; one that is silent now keeps what it said."""
        self.others = {**self.others, **others}

    def own(self, coordinator: str | None) -> Address:
        """The latest endpoint of this process. Looks a name up, so nobody should have to wait for it.

        Args:
          coordinator: `host:port` of the job's coordination service, which all of its processes can reach.
        """
        name = platform.node()
        for port, addr in reversed(list(self._open.items())):
            host = self._reachable(coordinator, name) if addr in _EVERY else addr
            return Address(name, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        return Address(name, "")

    def _reachable(self, coordinator: str | None, name: str) -> str:
        if self._reached is None or self._reached[0] != coordinator:
            hosts = [coordinator.rpartition(":")[0].strip("[]")] if coordinator else []
            leads = (interface(each) for each in (*hosts, ELSEWHERE))
            found = next((each for each in leads if each is not None and not is_loopback(each)), name)
            self._reached = coordinator, found
        return self._reached[1]


def interface(host: str) -> str | None:
    """The address of the interface that leads to a host; None if none does."""
    with contextlib.suppress(OSError):
        for family, kind, _, _, place in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM):
            with contextlib.suppress(OSError), socket.socket(family, kind) as asked:
                asked.connect(place)
                return str(asked.getsockname()[0])
    return None
