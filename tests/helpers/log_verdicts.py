"""Verdict of a diagnosis on the text of a log."""

from __future__ import annotations

from pathlib import Path

from jaxobs.ops.diagnosis import Inputs, diagnose, gather

STEPS = "2026-01-31 09:00:00,000 INFO train: step 1 loss 9.1\n2026-01-31 09:00:01,000 INFO train: step 2 loss 9.0\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 84, in main\n    step(state)\n'


def said(folder: Path, text: str) -> tuple[str, list[str]]:
    """The verdict and the causes of one log."""
    path = folder / "run.log"
    path.write_text(text, encoding="utf-8")
    found = diagnose(gather(Inputs(logs=(str(path),))))
    return found.verdict, [each.id for each in found.causes]
