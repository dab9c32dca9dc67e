"""Addresses of the pages that pip does not install: `docs/` and `runbooks/` of the repository."""

PROJECT = "https://github.com/jaxobs/jaxobs"
"""Address of the repository; the metadata of the package repeat it, and a test compares them."""


def page_url(path: str) -> str:
    """Returns the address of a page, from its path in the repository: `docs/profile.md#a-capture-from-python`."""
    return f"{PROJECT}/blob/main/{path}"


def runbook_url(alert: str) -> str:
    """Returns the address of the runbook of an alert; without one, of the page about diagnoses."""
    return page_url(f"runbooks/{alert}.md" if alert else "docs/diagnose.md")


UNKNOWN_ALERT = page_url("docs/agent.md#alerts-that-it-does-not-know")
"""Page about what to do with an alert that has no runbook."""
