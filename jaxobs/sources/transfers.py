"""Host transfers: where the setting `transfers` is on, what moves between host and devices, by call site."""

from types import FrameType

from jaxobs.internals.transfers import Moved, Watch
from jaxobs.sources.support.source import Source
from jaxobs.state.transfers import Transfers
from jaxobs.state.wall import Wall


class TransfersSource(Source):
    """The source: arrays that were moved in; figures by site and `transfer` events out."""

    _watch: Watch | None = None

    def start(self) -> None:
        """Watches, if it is wanted."""
        if self._store.settings.transfers and self._watch is None:
            self._watch = Watch(self._moved)
            reads, puts = self._watch.start()
            self._store.describe(capabilities={"transfers_to_host": reads, "transfers_to_device": puts})

    def stop(self) -> None:
        """Puts back what was there before."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    def sample(self) -> None:
        """Follows the setting, and says what is new."""
        if not self._store.settings.transfers:
            self.stop()
        elif self._watch is None:
            self.start()
        if self._watch is not None:
            self._watch.keep()
        self._tell()

    def ending(self) -> None:
        """The program has ended: the figures as they are."""
        self._tell(all_of_them=True)

    def _tell(self, *, all_of_them: bool = False) -> None:
        transfers = self._store.part(Transfers)
        if transfers.dropped:
            dropped, transfers.dropped = transfers.dropped, 0
            self._store.drop("transfer_sites", dropped)
        for event in transfers.to_tell(all_of_them=all_of_them):
            self._store.record(event)

    def _moved(self, moved: Moved, frame: FrameType) -> None:
        self._store.part(Transfers).take(moved, frame, self._store.part(Wall))


source = TransfersSource
