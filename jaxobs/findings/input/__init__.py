"""Findings about waits for input."""
