"""Incidents with a known cause, recorded for replay, and how often `jaxobs diagnose` finds it.

`scenarios/<family>.txt` holds a family, one scenario after another. Each begins with a line `+++ its_name`, then has a
head in TOML that says what is true and who says so, a line `+++`, and the sources as the incident left them, each after
a line `=== log NAME` (or `event-log`, `metrics-file`, `prometheus`, `target`):

    +++ adapter_out_of_queues
    kind = "single"
    expect = "cause"
    causes = ["nccl_start"]
    truth = "The adapter has nothing left to allocate for another process."
    cure = "End what other processes hold of the adapter."
    +++
    === log rank-7.log
    NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument

To add one, append it to the file of its family; a new file is a new family. `python -m benchmarks.incidents` prints the
table of `docs/diagnose.md`, and `--write` puts it there; the tests replay all of it at every commit. One after a public
thread with a `cure` is a known incident that `jaxobs diagnose` lists: `python -m benchmarks.incidents.nearest --write`.
"""
