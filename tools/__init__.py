"""Tools for those who work on jaxobs; no part of the package."""
