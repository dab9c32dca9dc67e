"""The part of the state that no event tells, as short as can be: for the event log, which has no snapshots."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from jaxobs.facts.functions import FunctionState
from jaxobs.facts.memory import DeviceState
from jaxobs.facts.standing import Standing
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.host_work import HostMeter
from jaxobs.state.input_waits import Inputs
from jaxobs.state.routes import Routes
from jaxobs.state.runs import Runs, time_state
from jaxobs.state.transfers import Transfers
from jaxobs.state.utilization import loop_states
from jaxobs.state.wall import Wall
from jaxobs.state.watched import watched_states


def standing(
    part: Callable[[Any], Any], functions: Iterable[FunctionState], devices: Iterable[DeviceState],
    peak_flops: float | None,
) -> Standing:  # fmt: skip
    """Returns the state at this moment from `Store.part`; `peak_flops` is a device's, where it is set."""
    loops = loop_states(part, functions, devices, peak_flops)
    return Standing(
        wall=time_state(part(Wall), part(Checkpoints), part(Runs), part(HostMeter)),
        # Four digits are more than a picture shows.
        loops=tuple(dataclasses.replace(each, recent=tuple(float(f"{s:.4g}") for s in each.recent)) for each in loops),
        inputs=part(Inputs).frozen(),
        watched=watched_states(part),
        routes=part(Routes).frozen(),
        transfers=part(Transfers).frozen(),
    )
