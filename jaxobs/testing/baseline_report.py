"""Texts about a baseline: the failure of a test, and the table at the end of a run."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from jaxobs.testing.baseline_file import Entry
from jaxobs.testing.costs import Difference

MOST_ROWS = 40
MOST_NAMES = 10
HEADINGS = ("test", "function", "quantity", "baseline", "now", "change")

Row = list[str]


def row(node: str, difference: Difference) -> Row:
    """Returns a line of the table."""
    return [
        node,
        difference.function,
        difference.quantity,
        amount(difference.quantity, difference.before),
        amount(difference.quantity, difference.now),
        difference.change + ("" if difference.fails else " (no failure)"),
    ]


def amount(quantity: str, value: float) -> str:
    """With its unit, in full: `4,194,304 B`."""
    if quantity == "compile seconds":
        return f"{value:.3g} s"
    return f"{value:,.0f}" + (" B" if quantity.startswith("memory") else "")


def table(rows: Sequence[Row]) -> list[str]:
    """Aligned columns under headings."""
    return _aligned(HEADINGS, rows)


def _aligned(headings: Sequence[str], rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    shown: list[Sequence[str]] = [headings, *rows[:MOST_ROWS]]
    widths = [max(len(line[n]) for line in shown) for n in range(len(headings))]
    figures = len(headings) - 3
    lines = [
        "  ".join(cell.rjust(width) if n >= figures else cell.ljust(width) for n, (cell, width) in enumerate(cells))
        for cells in (list(zip(line, widths, strict=True)) for line in shown)
    ]
    return lines + ([f"and {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else [])


def missing(node: str, path: str, next_step: str) -> str:
    """Returns the failure of a test that the file does not know."""
    return f"{node} has no entry in the baseline {path}. Create it, and commit the file:\n  {next_step}"


def failure(node: str, path: str, before: Entry, now: Entry, differences: Sequence[Difference], next_step: str) -> str:
    """Returns the failure of a test that compiles something else than the file has."""
    lines = [f"What {node} compiles is not what the baseline {path} has.", *_elsewhere(before, now), ""]
    for line in _aligned(HEADINGS[1:], [row(node, each)[1:] for each in differences]):
        lines.append(f"  {line}")
    reasons = [reason for each in differences for reason in each.reasons]
    if reasons:
        lines += ["", "Compilations that the baseline does not have:", *(f"  {reason}" for reason in reasons)]
    lines += [
        "",
        f"Baseline: {before.environment.versions} on {before.environment.place}.",
        f"Now:      {now.environment.versions} on {now.environment.place}.",
        f"If this is intended, update the baseline and commit it:\n  {next_step}",
    ]
    return "\n".join(lines)


def _elsewhere(before: Entry, now: Entry) -> list[str]:
    """Returns a sentence where the baseline was made on other devices."""
    old, new = before.environment, now.environment
    if None in (old.platform, new.platform) or old.place == new.place:
        return []
    return [
        f"The baseline was made on {old.place}, but this is {new.place}: their figures cannot be compared. "
        "Keep one file for each, with --jaxobs-baseline."
    ]


def written(path: str, before: Mapping[str, Entry], after: Mapping[str, Entry], ran: Collection[str]) -> list[str]:
    """Returns a summary of what an update did to the file."""
    added = [node for node in after if node not in before]
    removed = [node for node in before if node not in after]
    changed = [node for node in after if node in before and after[node] != before[node]]
    kept = [node for node in after if node not in ran]
    empty = [node for node in ran if node in after and not after[node].functions]
    counts = f"{len(added)} added, {len(changed)} changed, {len(removed)} removed"
    lines = [f"{path}: {counts}." if added or changed or removed else f"{path} is unchanged."]
    if added:
        lines.append(f"Added: {_names(added)}.")
    if removed:
        lines.append(f"Removed, because these tests no longer exist or have no mark: {_names(removed)}.")
    if empty:
        lines.append(
            f"Only operations that JAX dispatches on its own compiled, so nothing is compared: {_names(empty)}."
        )
    if kept:
        lines.append(f"Kept, because these tests did not run or did not pass: {_names(kept)}.")
    return lines


def _names(nodes: Iterable[str]) -> str:
    names = sorted(nodes)
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
