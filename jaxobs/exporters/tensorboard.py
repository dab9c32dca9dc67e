"""TensorBoard: figures and parameters as event files in a directory, written by tensorboardX."""

from typing import Any

from jaxobs.base.config import Settings
from jaxobs.exporters.forms import tracked
from jaxobs.state.store import Store


class TensorBoard(tracked.Tracker):
    """Writes a run of its own into the directory."""

    def __init__(self, store: Store, directory: str) -> None:
        super().__init__(store)
        self._directory = directory
        self._writer: Any = None

    def run(self) -> Any:
        """The writer, which makes the directory."""
        if self._writer is None:
            from tensorboardX import SummaryWriter

            self._writer = SummaryWriter(logdir=self._directory, filename_suffix=".jaxobs")
        return self._writer

    def describe(self, run: Any, parameters: dict[str, str]) -> None:
        """Writes them as a table, on the tab of texts."""
        rows = "\n".join(f"| {name} | {value.replace('|', ' ')} |" for name, value in parameters.items())
        run.add_text("jaxobs/run", f"| parameter | value |\n|---|---|\n{rows}", 0)

    def write(self, run: Any, step: int, figures: dict[str, float]) -> None:
        """Writes them as scalars."""
        for name, value in figures.items():
            run.add_scalar(name, value, step)
        run.flush()

    def end(self, exit_code: int | None) -> None:
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()


def exporter(store: Store, settings: Settings) -> TensorBoard | None:
    """Returns the exporter to TensorBoard, None if not wanted; raises `MissingExtraError` without tensorboardX."""
    if not settings.tensorboard:
        return None
    tracked.installed("tensorboardX", "tensorboard", "tensorboardX", "tensorboard")
    return TensorBoard(store, settings.tensorboard)
