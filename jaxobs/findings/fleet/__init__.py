"""Findings about several processes of one job."""
