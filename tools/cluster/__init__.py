"""A Kubernetes API server on this machine, to which what is generated is applied: `python -m tools.cluster`."""
