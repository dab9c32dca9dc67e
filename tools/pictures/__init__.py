"""The pictures of docs/screens.md: what the live page says of programs with one fault each, and of one without."""
