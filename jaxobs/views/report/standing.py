"""How a process stood, by its log: as last reported, brought up to date by the steps since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jaxobs.facts.loops import LoopState
from jaxobs.facts.process import Exit
from jaxobs.facts.standing import Standing
from jaxobs.facts.steps import Step
from jaxobs.state.loops import MOST_SHOWN

MOST_LOOPS = 100


class Stood:
    """Event by event, what the snapshot has of steps, time, inputs, watched values and requests."""

    def __init__(self) -> None:
        self._told = Standing()
        self._loops: dict[str, LoopState] = {}

    def take(self, event: object) -> None:
        """Takes in the next event of the process; most do not matter here."""
        if isinstance(event, Step | Exit):
            if isinstance(event, Step):
                self._take_step(event)
            if event.standing is not None:
                self._told = event.standing
                self._loops = {each.name: each for each in event.standing.loops}

    def _take_step(self, event: Step) -> None:
        loop = self._loops.get(event.loop)
        if loop is None:
            if len(self._loops) >= MOST_LOOPS:
                return
            loop = LoopState(name=event.loop)
        self._loops[event.loop] = replace(loop, slow=loop.slow + 1) if event.slow else _gone_on(loop, event)

    def fields(self) -> dict[str, Any]:
        """Fields of the snapshot."""
        return {
            "wall": self._told.wall,
            "loops": tuple(self._loops.values()),
            "inputs": self._told.inputs,
            "watched": self._told.watched,
            "routes": self._told.routes,
        }


def _gone_on(loop: LoopState, event: Step) -> LoopState:
    """The loop after these steps. Percentiles need every step, so that they stay as they were reported last."""
    mean = event.seconds / event.count if event.count else None
    items = event.items
    return replace(
        loop,
        steps=max(loop.steps, event.last),
        ended=event.time,
        items=loop.items if items is None else (loop.items or 0) + items,
        recent=loop.recent if mean is None else (*loop.recent, mean)[-MOST_SHOWN:],
        mean_seconds=mean,
        least_seconds=min(filter(None, (loop.least_seconds, event.least_seconds)), default=None),
        steps_per_second=1 / mean if mean else None,
        items_per_second=items / event.seconds if items is not None and event.seconds else None,
    )
