"""The text of a compiled program, as XLA prints it: its instructions and its matrix products, without JAX."""
