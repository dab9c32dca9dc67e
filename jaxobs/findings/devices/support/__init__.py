"""Samples of the profiler, as several kinds need them."""
