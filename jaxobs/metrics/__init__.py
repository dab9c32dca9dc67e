"""The catalogue: each metric, declared once."""
