"""The list of incidents: open ones first, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.ops.agent.pages.markup import Html, link, page, tag, text
from jaxobs.ops.agent.pages.report_page import badge, when
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.subjects import Subject

MOST_SHOWN = 200
MOST_READ = 1000
"""Reports that are read for one list."""


@dataclass(frozen=True, slots=True)
class Row:
    """An incident in the list."""

    id: str
    name: str
    labels: Mapping[str, str]
    verdict: str
    state: str
    severity: str
    said: str
    since: str

    @classmethod
    def of(cls, report: Report) -> Row:
        """Returns the line of a report."""
        said = report.causes[0].title if report.causes else report.headline.removeprefix(f"{report.subject.name}: ")
        return cls(report.id, report.subject.name, report.subject.labels, report.verdict, report.state,
                   report.severity, said, report.opened_at)  # fmt: skip

    def fits(self, wanted: Mapping[str, str]) -> bool:
        """Returns whether it has the labels that are wanted; an incident without a job is called by its name."""
        return all(self.labels.get(key, self.name if key == "job" else "") == value for key, value in wanted.items())


class Lists:
    """The incidents of a store, of which a report is read again only when it has changed. Not safe for threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Row]] = {}

    def rows(
        self, names: Sequence[str], opened: set[str], wanted: Mapping[str, str], version: Callable[[str], object],
        read: Callable[[str], Report | None],
    ) -> list[Row]:  # fmt: skip
        """Returns the lines of the list.

        Args:
          names: ids of all reports.
          opened: ids of the incidents that are open.
          wanted: labels that an incident must have.
          version: returns what changes when a report does.
        """
        slug = Subject.of({"job": wanted["job"]}).slug if "job" in wanted else ""
        fitting = [each for each in names if each[16:].startswith(slug)]
        fitting.sort(key=lambda each: (each in opened, each), reverse=True)
        if len(self._known) > 2 * MOST_READ:
            self._known.clear()
        found: list[Row] = []
        for name in fitting[:MOST_READ]:
            now, (then, row) = version(name), self._known.get(name, (None, None))
            if row is None or now != then:
                report = read(name)
                if report is None:
                    continue
                row = Row.of(report)
                self._known[name] = now, row
            if row.fits(wanted):
                found.append(row)
        return found[:MOST_SHOWN]


def list_page(rows: Sequence[Row], wanted: Mapping[str, str], waiting: int) -> str:
    """Returns the HTML page of the list.

    Args:
      waiting: incidents that have no report yet.
    """
    return page("Incidents", *_parts(rows, wanted, waiting))


def _parts(rows: Sequence[Row], wanted: Mapping[str, str], waiting: int) -> Iterator[Html]:
    yield tag("h1", "Incidents")
    job = wanted.get("job", "")
    inputs = [tag("input", type="hidden", name=key, value=value) for key, value in wanted.items() if key != "job"]
    inputs.append(tag("input", name="job", value=job, placeholder="job", aria_label="job"))
    yield tag("form", *inputs, tag("button", "Show"), method="get", action="./")
    if waiting:
        yield tag("p", f"{waiting} being investigated; reload for the report.", class_="dim")
    others = ", ".join(f"{key} {value}" for key, value in wanted.items())
    if wanted:
        yield tag("p", "Only ", text(others), ". ", link("./", "Show all"), class_="dim")
    if not rows:
        said = f"There is no incident{' of these' * bool(wanted)}. Alerts that Alertmanager sends to "
        yield tag("p", said, tag("code", "/webhook"), " appear here with what was found.", class_="dim")
    for row in rows:
        since = tag("div", f"since {when(row.since)}", class_="dim")
        lines = tag("div", *_badges(row), tag("b", text(row.name))), tag("div", text(row.said)), since
        yield tag("a", *lines, class_="row", href=f"./incidents/{row.id}")
    if len(rows) == MOST_SHOWN:
        yield tag("p", f"The first {MOST_SHOWN} are shown: name a job for its own.", class_="dim")


def _badges(row: Row) -> list[Html]:
    return [badge(row.state), badge(row.verdict), *([badge("critical")] if row.severity == "critical" else [])]
