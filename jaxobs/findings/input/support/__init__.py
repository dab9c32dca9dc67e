"""Looks at inputs, for findings about them."""
