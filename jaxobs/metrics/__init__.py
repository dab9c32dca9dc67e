"""The catalogue of metrics: each declared once, with name, unit, labels and help."""
