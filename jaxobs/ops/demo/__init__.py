"""The demo: a real training run with six typical mistakes in it, and what jaxobs says about each of them."""
