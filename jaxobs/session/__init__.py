"""Starts and ends observation in one process."""
