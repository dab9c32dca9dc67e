"""The quiet suite and the death suite of the alerts: what happens to jobs while all is well, and how they die.

A kind of life is an entry of `LIVES` in a module of `lives/`, a kind of death one of `DEATHS` in a module of `deaths/`.
`python -m tools.alert_suites` writes both into `docs/alerts.md`; with `--check` it says whether they are there.
"""
