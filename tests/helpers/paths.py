"""Paths in the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PROGRAMS = TESTS / "helpers" / "programs"
"""Programs that tests run in processes of their own."""
VERSIONS = TESTS / "versions"
