"""The demo: a real training run with four typical mistakes in it, and what jaxobs says about each of them."""
