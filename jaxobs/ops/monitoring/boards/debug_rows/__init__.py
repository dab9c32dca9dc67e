"""The rows of the dashboard `debug`."""
