"""Manifests and configurations as plain data, one module for each system that reads them."""
