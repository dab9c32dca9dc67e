"""Findings about what compiles, how often and why, and about the persistent cache."""
