"""The flight recorder: errors, out of memory, and the last minutes of a process."""
