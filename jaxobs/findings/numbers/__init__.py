"""Findings about values that are not finite."""
