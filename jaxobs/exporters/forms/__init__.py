"""The forms in which facts leave: Prometheus text and HTTP answers."""
