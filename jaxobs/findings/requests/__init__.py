"""Findings about served requests."""
