"""Reports in a browser: pages without a script and without anything from elsewhere."""
