"""The pictures of the documentation, drawn from real programs: `python -m tools.pictures`."""
