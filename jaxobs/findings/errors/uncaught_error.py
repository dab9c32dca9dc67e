"""`uncaught_error`: the program ended by an exception."""

from collections.abc import Iterator

from jaxobs.findings.cases import UNKNOWN, Case, Scene

NAME = "uncaught_error"
NEEDS = Scene
FOLLOWS = ("memory_ran_out", "nonfinite_values")

_MOST_TEXT = 200


def find(scene: Scene) -> Iterator[Case]:
    """The exception that the process ended by."""
    ends = [each for each in scene.errors if each.uncaught and (scene.ended or each.report)]
    for error in ends[-1:]:
        said = " ".join((error.message or "").split())
        said = said if len(said) <= _MOST_TEXT else f"{said[: _MOST_TEXT - 1]}…"
        meaning = f" {error.meaning}" if error.meaning else ""
        yield Case(
            function=error.function or UNKNOWN,
            subject=error.error,
            severity="critical",
            summary=f"{error.error} ended the program{f': {said}' if said else ''}{'' if said else '.'}{meaning}",
            advice=error.advice or (
                f"Read the last minutes before it in {error.report}." if error.report
                else "Read the traceback that the program printed."
            ),
            where=error.call_site,
            count=1,
            since=error.time,
            data={"error": error.error, "error_kind": error.error_kind},
        )  # fmt: skip
