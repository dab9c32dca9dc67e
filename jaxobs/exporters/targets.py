"""`/api/v1/targets`: on process 0, where all processes of the job are scraped, as Prometheus' `http_sd` wants it.

The answer is the whole list or none: while processes have reported no address it is a 503, and Prometheus keeps
the list that it has. https://prometheus.io/docs/prometheus/latest/http_sd/
"""

import time
from collections.abc import Mapping
from typing import Any

from jaxobs import internals
from jaxobs.exporters.forms.http_types import Request, Response, Route, json_response, problem
from jaxobs.findings.fleet.support.addresses import Address, Addresses
from jaxobs.findings.fleet.support.digest import MOST_PROCESSES
from jaxobs.state.store import Store

WAIT_SECONDS = 60.0
"""Seconds after the first request for which processes are waited for; then the list is of those that have told."""
SCHEME = "__scheme__"
PROCESS, HOST = "__meta_jax_process_index", "__meta_jax_host"
"""Labels that relabelling may use; Prometheus drops them afterwards, so that no series has more labels than before."""
UNKNOWN = "503 Service Unavailable"


def routes(store: Store) -> Mapping[str, Route]:
    """The paths that this exporter answers."""
    asked: list[float] = []

    def targets(request: Request) -> Response:
        if not internals.backends_awake():
            return problem(UNKNOWN, "JAX has not started, so the number of processes in the job is not known yet.")
        index, count = internals.process_index_and_count()
        addresses = store.part(Addresses)
        if index != 0:
            told = addresses.others.get(0)
            where = f" at {told.address}" if told is not None and told.address else ""
            return problem("404 Not Found", f"This is process {index} of the job. Ask process 0{where}.")
        asked[:] = asked[:1] or [time.monotonic()]
        own = addresses.own(internals.distributed.coordinator())
        known = {0: own, **addresses.others}
        missing = [each for each in range(min(count, MOST_PROCESSES)) if each not in known]
        if missing and time.monotonic() - asked[0] < WAIT_SECONDS:
            named = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
            return problem(
                UNKNOWN, f"{len(missing)} of {count} processes have not reported their addresses yet: {named}."
            )
        reachable = [each for each in sorted(known) if _reachable(known[each], own)]
        return json_response([_group(each, known[each], addresses.scheme) for each in reachable])

    return {"/api/v1/targets": targets}


def _reachable(address: Address, own: Address) -> bool:
    """Returns whether those who reached this process can scrape an address; on loopback, only its own machine."""
    return bool(address.address) and (address.host == own.host or not address.for_itself_alone)


def _group(index: int, address: Address, scheme: str) -> dict[str, Any]:
    labels = {PROCESS: str(index), HOST: address.host} | ({SCHEME: scheme} if scheme != "http" else {})
    return {"targets": [address.address], "labels": labels}
