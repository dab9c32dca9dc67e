"""Parts of `jaxobs profile`: places that a trace may come from, and the files that it can be written as."""
