"""Instruments that a program calls: `jit`, `instrument`, `step`, `data`, `request`, `phase`, `watch`, middleware."""
