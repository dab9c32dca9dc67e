"""The version of jaxobs."""

__version__ = "0.1.0"
