"""Texts and pages for people: terminal, report, the story of a log, two runs compared."""
