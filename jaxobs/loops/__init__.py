"""Loops that no program declares: found by looking at calls, at stacks, and at the turns that they make."""
