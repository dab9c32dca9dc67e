"""Dashboards, alerts, objectives, runbooks and deployment: the declarations, and what draws them."""
