"""Facts made by hand for the live page: samples of where the devices' time goes."""

from __future__ import annotations

from helpers.made_by_hand import profile_sample
from jaxobs.facts.profile_samples import ProfileState, SampledFunction
from jaxobs.facts.profiles import CATEGORIES, IdleTime, OperationTime

SECONDS = {name: 0.09 / 2**number for number, name in enumerate(CATEGORIES)}
OPERATIONS = tuple(
    OperationTime(
        operation=f"{name}.{number}", function="train.step", category=name, scope=f"jit(step)/layer{number}/{name}",
        source=f"train.py:{12 + number}", device_seconds=seconds, share=seconds / 0.2, count=8, flops=1e9, bytes=1e6,
        bound=("compute", "memory", "unknown")[number % 3],
    )
    for number, (name, seconds) in enumerate(SECONDS.items())
)  # fmt: skip
SAMPLE = profile_sample(
    functions=(SampledFunction(function="train.step", seconds=SECONDS, exposed_seconds=0.004),),
    operations=OPERATIONS,
    idle=(IdleTime(reason="input", seconds=0.015), IdleTime(reason="garbage_collection", seconds=0.005)),
)
PROFILE = ProfileState(
    samples=2, window_seconds=0.2, device_seconds={"train.step": SECONDS}, exposed_seconds={"train.step": 0.008},
    busy=SAMPLE.busy, latest=(SAMPLE, SAMPLE),
)  # fmt: skip
