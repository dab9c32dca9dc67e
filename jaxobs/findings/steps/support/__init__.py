"""Slow steps, and pauses before steps."""
