"""What brings the generated files into a cluster or to a Prometheus: plain data, one module for each system."""
