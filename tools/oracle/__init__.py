"""Tests of other people, run without jaxobs and with it, and compared test by test."""

PLAIN, INSTALL, REPLACED = WAYS = ("plain", "install", "replaced")
WAY, OUTCOMES = "ORACLE_WAY", "ORACLE_OUTCOMES"
"""Variables that say to a process of tests how it runs, and where it writes outcomes."""
