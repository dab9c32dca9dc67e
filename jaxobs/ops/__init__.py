"""Tools for operators: doctor, diagnosis, agent, MCP, rehearsals, and monitoring (dashboards, alerts, deployment)."""
