"""Costs of jaxobs, one file for each kind with the bounds that it has to hold; and how often it is right.

The latter is measured by `corpus`, on causes of compilations, and by `incidents`, on diagnoses.
"""
