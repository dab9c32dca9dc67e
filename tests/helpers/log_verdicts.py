"""Verdict of a diagnosis on the text of a log, and tables of such logs:

    == subject
    lines that each log of it begins with
    => expected of the first log
    its further lines
    => expected of the second one

`{steps}` stands for two lines of ordinary steps, `{traceback}` for the beginning of a traceback.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.result import CAUSE, LIKELY

STEPS = "2026-01-31 09:00:00,000 INFO train: step 1 loss 9.1\n2026-01-31 09:00:01,000 INFO train: step 2 loss 9.0\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 84, in main\n    step(state)\n'


def said(folder: Path, text: str) -> tuple[str, list[str]]:
    """The verdict and the causes of one log; a likely cause counts as one."""
    path = folder / "run.log"
    path.write_text(text, encoding="utf-8")
    found = diagnose(gather(Inputs(logs=(str(path),))))
    return CAUSE if found.verdict == LIKELY else found.verdict, [each.id for each in found.causes]


def tables(*paths: Path) -> list[Any]:
    """Returns each log of some files, and what is expected of it, as parameters of a test."""
    found = []
    for path in paths:
        for subject in f"\n{path.read_text(encoding='utf-8')}".removesuffix("\n").split("\n== ")[1:]:
            beginning, *logs = subject.split("\n=> ")
            title, *head = beginning.split("\n")
            for number, log in enumerate(logs, 1):
                expected, *rest = log.split("\n")
                text = "".join(f"{line}\n" for line in (*head, *rest))
                text = text.replace("{steps}\n", STEPS).replace("{traceback}\n", TRACEBACK)
                found.append(pytest.param(text, expected, id=f"{path.stem}: {title}, {number}"))
    return found
