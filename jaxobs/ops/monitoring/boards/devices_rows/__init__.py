"""The rows of the dashboard `devices`."""
