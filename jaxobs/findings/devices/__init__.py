"""Findings about the devices' time, from samples of the profiler."""
