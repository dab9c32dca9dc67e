"""Digests that processes tell each other, and the view of the job that they add up to."""
