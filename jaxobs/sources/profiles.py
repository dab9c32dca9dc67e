"""Profiles: where the setting `profile_interval` wants them, samples of where the devices' time goes."""

from jaxobs.internals import short_traces
from jaxobs.sources.support.profile_sampling import ProfileSampling
from jaxobs.sources.support.source import Source


class ProfilesSource(Source):
    """The source: traces of the profiler in, `profile` events out. A forked child does not take traces."""

    def _begin(self) -> None:
        self._sampling: ProfileSampling | None = None
        self._interval = 0.0
        self._over = False

    def sample(self) -> None:
        """Begins or ends to take samples, as the setting is now."""
        wanted = 0.0 if self._over else self._store.settings.profile_interval
        if wanted == self._interval:
            return
        self._rest()
        self._interval = wanted
        if not wanted:
            return
        can = short_traces.can_record()
        self._store.describe(capabilities={"short_traces": can})
        if can:
            self._sampling = ProfileSampling(self._store, wanted)
        else:
            self._store.note("The setting `profile_interval` has no effect: it needs JAX 0.7 or newer.")

    def ending(self) -> None:
        """The program has ended: what the devices do from here on is not part of it."""
        self._over = True
        self._rest()

    def stop(self) -> None:
        """Takes no samples any more."""
        self._rest()
        self._interval = 0.0

    def after_fork(self) -> None:
        """In a forked child: its parent takes the samples."""
        self._begin()
        self._over = True

    def _rest(self) -> None:
        if self._sampling is not None:
            self._sampling.stop()
            self._sampling = None


source = ProfilesSource
