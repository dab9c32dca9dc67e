"""`failed_requests`: a route answers a good part of its requests with an error."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.findings.cases import Case
from jaxobs.findings.scene import Scene

NAME = "failed_requests"
NEEDS = Scene

FEWEST = 5
"""Failed requests that count: fewer are chance."""
LEAST_SHARE = 0.05
CRITICAL_SHARE = 0.5

LETS_GO = 12
"""A minute of looks: a share near the bound comes and goes."""


def find(scene: Scene) -> Iterator[Case]:
    """A case for each route."""
    for route in scene.snapshot.routes:
        recent, lately = route.recent, ""
        failed, total = route.count(outcome="error"), route.total
        if recent is not None and recent.total < total:
            failed, total, lately = recent.failed, recent.total, f", in the last {recent.seconds / 60:.0f} minutes"
        if failed < FEWEST or failed < LEAST_SHARE * total:
            continue
        kinds = [each for each in scene.errors if not each.uncaught]
        latest = kinds[-1] if kinds else None
        yield Case(
            subject=route.route,
            severity="critical" if failed >= CRITICAL_SHARE * total else "warning",
            summary=f"{failed:,} of {total:,} requests to `{route.route}` failed ({failed / total:.0%}){lately}.",
            advice=(
                latest.advice if latest is not None and latest.advice else
                "Read the exception in the server's own log: jaxobs counts how requests end, but does not keep their "
                "tracebacks."
            ),
            where=latest.call_site if latest is not None else None,
            count=failed,
            evidence=(f"{latest.error} at {latest.call_site}: {latest.meaning}",) if latest is not None else (),
            data={"route": route.route, "share": failed / total},
        )  # fmt: skip
