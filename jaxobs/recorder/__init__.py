"""The flight recorder: errors, out of memory, the last minutes, and the files left for the next process."""
