"""`failed_requests`: a route answers a good part of its requests with an error."""

from collections.abc import Iterator

from jaxobs.findings.cases import Case, Scene

NAME = "failed_requests"
NEEDS = Scene

FEWEST = 5
"""Failed requests that count: fewer are chance."""
LEAST_SHARE = 0.05
CRITICAL_SHARE = 0.5
MOST_RAISED = 160
"""Characters of an exception."""

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
        latest = kinds[-1] if kinds else route.failure
        raised = "" if latest is None else f"{latest.error}: {latest.message}" if latest.message else latest.error
        yield Case(
            subject=route.route,
            severity="critical" if failed >= CRITICAL_SHARE * total else "warning",
            summary=f"{failed:,} of {total:,} requests to `{route.route}` failed ({failed / total:.0%}){lately}"
            + (f", a late one by `{raised[:MOST_RAISED]}`." if raised else "."),
            advice=(
                kinds[-1].advice if kinds and kinds[-1].advice else
                f"See {latest.call_site}, where it was raised." if latest is not None and latest.call_site else
                "Read the exception in the server's own log: these requests ended without one that jaxobs could see."
            ),
            where=latest.call_site if latest is not None else None,
            count=failed,
            evidence=(f"{kinds[-1].error} at {kinds[-1].call_site}: {kinds[-1].meaning}",) if kinds else (),
            data={"route": route.route, "share": failed / total},
        )  # fmt: skip
