"""Reasons for compilations and cache misses: signatures in, cause and sentence out."""
