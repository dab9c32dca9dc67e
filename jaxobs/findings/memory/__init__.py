"""Findings about memory: what is never freed, and what ran out."""
