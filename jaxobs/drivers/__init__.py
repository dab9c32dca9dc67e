"""Readings of accelerators: NVML, libtpu, which device is which, and the peaks of data sheets."""
