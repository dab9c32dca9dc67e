"""State of a process: meters of the hot paths, utilization, and the store of snapshots; without threads and files."""
