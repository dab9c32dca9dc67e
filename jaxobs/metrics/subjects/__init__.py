"""The metrics: a module for each subject, found by this folder, with `METRICS`."""

EACH_HAS = ("METRICS",)
