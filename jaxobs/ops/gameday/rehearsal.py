"""The program of a game day: the demo's training run with one fault in it. Run by `jaxobs run`, as a user's program.

python -m jaxobs.ops.gameday.rehearsal FAULT SEED ONSET PAUSE FOLDER
"""

import logging
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxobs.instruments.inputs import data
from jaxobs.instruments.nonfinite import watch
from jaxobs.instruments.stepping import step
from jaxobs.ops.demo import training
from jaxobs.ops.gameday.fault_types import Fault, Scene
from jaxobs.ops.gameday.faults import FAULTS

LOG = logging.getLogger("train")
EVERY = 20
"""Steps from one line of the log to the next."""


def main(arguments: list[str]) -> None:
    """Trains until it is stopped.

    Args:
      arguments: the name of the fault, a seed, after how many seconds it starts, seconds of rest after each step, and
        a folder.
    """
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    name, seed, onset, pause, folder = arguments
    train(FAULTS[name], Scene(random.Random(int(seed)), Path(folder)), float(onset), float(pause))


def train(fault: Fault, scene: Scene, onset: float, pause: float) -> None:
    """Runs the training loop with the fault in it."""
    digits, _ = training.load()
    model, optimizer = training.new_model()
    scene.model = model
    started = time.monotonic()
    healthy = scene.rate
    LOG.info("training on %d digits", len(digits))
    batches = _batches(digits, fault, scene, lambda: time.monotonic() - started >= onset)
    for number, (images, labels) in enumerate(data(batches, "digits")):
        broken = number > 0 and time.monotonic() - started >= onset
        scene.images, scene.labels, scene.rate = images, labels, healthy
        with step("train", items=len(labels)):
            if broken and fault.on_step is not None:
                fault.on_step(scene)
            loss = training.train_step(model, optimizer, scene.images, scene.labels, scene.rate)
            watch(input_batch=scene.images, loss=loss)
            shown = float(loss)
            time.sleep(pause)
        scene.count += broken
        if number % EVERY == 0:
            LOG.info("step %d: loss %.4f", number, shown)


def _batches(digits: training.Digits, fault: Fault, scene: Scene, broken: Any) -> Iterator[tuple[Any, Any]]:
    epoch = number = 0
    while True:
        for images, labels in digits.batches(epoch, keep_rest=False):
            if number and broken() and fault.on_input is not None:
                scene.images, scene.labels = images, labels
                fault.on_input(scene)
                images, labels = scene.images, scene.labels
            number += 1
            yield images, labels
        epoch += 1


if __name__ == "__main__":
    main(sys.argv[1:])
