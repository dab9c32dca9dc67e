"""Incidents with a known cause, recorded for replay, and how often `jaxobs diagnose` finds it.

Each scenario is a file in `scenarios/<family>/`: what is true and who says so, then the sources as the incident left
them. `python -m benchmarks.incidents` prints the table of `docs/diagnose.md`; the tests replay all of it at every
commit.
"""
