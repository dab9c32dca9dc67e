"""Faults of a game day: the truth about each, and what injects it."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Scene:
    """The training run as a fault sees it before each step. What it changes holds for that step."""

    random: random.Random
    folder: Path
    """Folder of the rehearsal, for files."""
    images: Any = None
    """The batch, a NumPy array of 128 images of 8 by 8 pixels."""
    labels: Any = None
    rate: Any = 1.0
    """Scales the learning rate."""
    count: int = 0
    """Steps since the fault began, from 0."""
    kept: list[Any] = field(default_factory=list)
    """Objects that outlive the step."""
    model: Any = None


Hook = Callable[[Scene], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Fault, and what a team should find out."""

    title: str
    """Answer to the rehearsal, as a sentence."""
    causes: tuple[str, ...]
    """Causes that `jaxobs diagnose` may name for it, each of them right."""
    alert: str
    """The alert that fires."""
    lead: float
    """Minutes from the fault until the condition of the alert holds; what the alert waits comes on top."""
    from_start: float = 0.0
    """Minutes of a process's life in which the alert is silent."""
    only: str = ""
    """Condition of the alert besides that: "fires only if ..."; empty if there is none."""
    undo: str
    """How one would end it in a real program."""
    on_input: Hook | None = None
    """Runs where the input pipeline makes a batch."""
    on_step: Hook | None = None
    """Runs at the beginning of a step, inside it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the program; `{folder}` is that of the rehearsal."""
