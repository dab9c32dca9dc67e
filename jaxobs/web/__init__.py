"""The HTTP endpoint of a process: the server, its protection, the live page and the JSON API."""
