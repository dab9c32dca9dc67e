"""Loops of steps that no program declares, found by looking: at calls, at stacks, at the turns that they make."""
