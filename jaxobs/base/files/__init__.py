"""Files that may hold up the program: pipes without a reader, full disks, disks that do not answer."""

import os


def absolute(path: str) -> str:
    """Returns `os.path.abspath` of a path, or the path as it is where somebody has deleted the working directory."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        return path
