"""Findings about the steps of loops."""
