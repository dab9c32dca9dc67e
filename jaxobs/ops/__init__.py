"""Tools for operators: demo, doctor, diagnosis, agent, MCP, rehearsals, monitoring (dashboards, alerts, deployment)."""
