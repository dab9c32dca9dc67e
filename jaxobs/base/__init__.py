"""Ground of every room: settings, guards around failures of jaxobs, threads, files, registries found by folder."""
