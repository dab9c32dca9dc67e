"""Parts of sources, and the base class of most."""
