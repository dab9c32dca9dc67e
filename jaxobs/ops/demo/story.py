"""The run itself: trains on digits, makes one mistake after the other, cures each, and then stays healthy."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from jaxobs.instruments.inputs import data
from jaxobs.instruments.nonfinite import watch
from jaxobs.instruments.requests import request
from jaxobs.instruments.stepping import step
from jaxobs.instruments.timed import phase
from jaxobs.ops.demo import training
from jaxobs.ops.demo.telling import Teller
from jaxobs.ops.demo.training import BATCH
from jaxobs.ops.demo.troubles import COLD, EVALUATION, LAMBDA, RAGGED, SCALAR, TROUBLES, Seen, Trouble, watching

EPOCHS_ONCE = 20
STEP_PAUSE = 0.08
"""Seconds that a paced run rests after each step, so that it can be watched and costs little."""
MOMENTS = (0.04, 0.12, 0.2, 0.28, 0.36)
"""Moments of the mistakes in a paced run, as parts of its time."""
LEAK = 0.4
"""From when on a paced run keeps each batch on the device."""
LAMBDA_ROUNDS = 3
REQUEST_SIZES = (5, 9, 14)


class _Stopped(Exception):  # noqa: N818
    """Somebody wants the run to end."""


class Story:
    """A run of the demo, at an easy pace for so many minutes or fast; `seen` and `accuracy` hold its results."""

    def __init__(self, teller: Teller, minutes: float | None, stopped: Callable[[], bool] = lambda: False) -> None:
        self.seen: list[Seen] = []
        self.accuracy = 0.0
        self._started = time.monotonic()
        self._teller = teller
        self._stopped = stopped
        self._seconds = None if minutes is None else minutes * 60
        self._train, self._test = training.load()
        self._model, self._optimizer = training.new_model()
        self._rate: Any = 1
        self._epoch = 0
        self._loss = float("nan")
        self._scores: Any = None
        self._kept: list[Any] = []

    @property
    def seconds(self) -> float:
        """Wall time since the run began."""
        return time.monotonic() - self._started

    def run(self) -> None:
        """Trains until the time is up, or a fixed number of epochs; the mistakes lie in between."""
        mistakes: dict[str, Callable[[], None]] = {
            RAGGED.name: self._ragged_last_batch,
            EVALUATION.name: self._evaluation_mode_left_on,
            SCALAR.name: self._scalar_that_changes_type,
            LAMBDA.name: self._lambda_in_a_loop,
            COLD.name: self._requests_of_any_size,
        }
        self._teller.begin(self._seconds or EPOCHS_ONCE)
        try:
            while not self._over():
                self._train_epoch()
                if len(self.seen) < len(TROUBLES) and self._moment_has_come():
                    mistakes[TROUBLES[len(self.seen)].name]()
        except _Stopped:
            pass
        finally:
            self._teller.end()

    def _over(self) -> bool:
        return self._epoch >= EPOCHS_ONCE if self._seconds is None else self.seconds >= self._seconds

    def _moment_has_come(self) -> bool:
        if self._seconds is None:
            return self._epoch > len(self.seen)
        return self.seconds / self._seconds >= MOMENTS[len(self.seen)]

    def _train_epoch(self) -> None:
        """An epoch as it should be: batches of one size, training mode, then the accuracy."""
        for images, labels in self._batches(keep_rest=False):
            self._step(images, labels)
        self._finish_epoch()

    def _batches(self, *, keep_rest: bool) -> Iterator[tuple[Any, Any]]:
        return iter(data(self._train.batches(self._epoch, keep_rest=keep_rest), "digits"))

    def _step(self, images: Any, labels: Any) -> None:
        if self._stopped():
            raise _Stopped
        with step("train", items=len(labels)):
            loss = training.train_step(self._model, self._optimizer, images, labels, self._rate)
            if self._seconds is not None:
                time.sleep(STEP_PAUSE)
            self._loss = float(loss)
        watch(loss=loss)
        if self._seconds is not None and self.seconds / self._seconds >= LEAK:
            # The last mistake: arrays that are kept on the device for nobody.
            self._kept.append(jax.device_put(images))

    def _finish_epoch(self) -> None:
        self._epoch += 1
        self._evaluate()
        self._model.train()
        done = self._epoch if self._seconds is None else self.seconds
        said = f"epoch {self._epoch:>3}   loss {self._loss:.3f}   accuracy {self.accuracy:.1%}"
        left = "" if self._seconds is None else f"{max(self._seconds - self.seconds, 0) / 60:.1f} min left"
        self._teller.progress(done, said, left)

    def _evaluate(self) -> None:
        """Measures the accuracy on the held-out digits; the model stays in evaluation mode."""
        self._model.eval()
        with phase("eval"):
            self._scores = training.predict(self._model, self._test.images)
            self.accuracy = float(np.mean(np.asarray(self._scores).argmax(-1) == self._test.labels))

    # ------------------------------------------------------------------------------------- the mistakes

    def _ragged_last_batch(self) -> None:
        for images, labels in self._batches(keep_rest=True):
            if len(labels) == BATCH:
                self._step(images, labels)
                continue
            with self._watched(RAGGED):
                self._step(images, labels)
        self._finish_epoch()

    def _evaluation_mode_left_on(self) -> None:
        batches = list(self._batches(keep_rest=False))
        half = len(batches) // 2
        for images, labels in batches[:half]:
            self._step(images, labels)
        self._evaluate()
        with self._watched(EVALUATION):
            for images, labels in batches[half:]:
                self._step(images, labels)
        self._finish_epoch()

    def _scalar_that_changes_type(self) -> None:
        self._rate = 0.5
        with self._watched(SCALAR):
            for images, labels in self._batches(keep_rest=False):
                self._step(images, labels)
        self._finish_epoch()

    def _lambda_in_a_loop(self) -> None:
        with self._watched(LAMBDA):
            for _ in range(LAMBDA_ROUNDS):
                self._train_epoch()
                jax.jit(lambda scores: jax.nn.softmax(scores).max(-1).mean())(self._scores).block_until_ready()

    def _requests_of_any_size(self) -> None:
        self._model.eval()
        with self._watched(COLD):
            for size in REQUEST_SIZES * 2:
                with request("/classify"):
                    np.asarray(training.predict(self._model, self._test.images[:size]))
        self._model.train()

    @contextmanager
    def _watched(self, trouble: Trouble) -> Iterator[None]:
        """Collects what compiles in the block, and reports it."""
        with watching(trouble) as seen:
            yield
        self.seen.append(seen)
        self._teller.trouble(seen)
        if len(self.seen) == len(TROUBLES) and self._seconds is not None:
            self._teller.line()
            self._teller.line(("From here on nothing should recompile. Watch it:", "program"))
            self._teller.addresses()
