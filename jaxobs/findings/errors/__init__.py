"""Findings about errors that end a process."""
