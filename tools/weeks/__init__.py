"""Plays ordinary weeks of three fleets to the rules as they are generated, and counts pages and tickets.

A module each: what a fleet does (`training`, `serving`, `research`), how it is played, and how the result is written.
"""
