"""Meters that the hot paths write, and the store that makes a snapshot of them: no threads and no files."""
