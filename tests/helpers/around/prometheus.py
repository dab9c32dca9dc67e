"""Around the examples of docs/prometheus.md."""

import prometheus_client

import jaxobs

example(1)
assert b"# TYPE jaxobs_" in prometheus_client.generate_latest(registry)
