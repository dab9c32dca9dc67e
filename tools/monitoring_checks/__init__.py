"""Checks of what `jaxobs generate` writes for Prometheus and Grafana: labels, rules and dashboards."""
