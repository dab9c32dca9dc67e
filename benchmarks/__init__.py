"""Costs of jaxobs, measured: one file for each kind of cost, each with the bounds that it has to hold."""
