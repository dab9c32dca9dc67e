"""Read-only tools for assistants, by the Model Context Protocol.

`tools/` has a module for each tool, found by that folder. Where to look is said when the server starts, and by nothing
that an assistant sends: tools take names, numbers and PromQL, never an address or a path.
"""
