import prometheus_client


example(1)
assert b"# TYPE jaxobs_" in prometheus_client.generate_latest(registry)
