"""An incident in one file: what `jaxobs diagnose` would read, hashed, with the clock of that moment.

    made = bundles.write(Inputs(logs=("worker-0.log",), prometheus=("http://prometheus:9090",)), "incident.tar.gz")
    made.diagnosis.verdict, made.sha256

    with bundles.opened("incident.tar.gz") as bundle:
        diagnosis = bundle.diagnosis()

Equal evidence at an equal time gives equal bytes, and a bundle gives the same diagnosis wherever it is opened.
"""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxobs.ops import diagnosis
from jaxobs.ops.diagnosis import Inputs
from jaxobs.ops.diagnosis.bundles import archives, manifests, staging
from jaxobs.ops.diagnosis.bundles.archives import BundleError as BundleError
from jaxobs.ops.diagnosis.bundles.archives import Entry
from jaxobs.ops.diagnosis.bundles.manifests import DIAGNOSIS, MANIFEST, Clock, Manifest
from jaxobs.ops.diagnosis.bundles.recording import MOST_OF_AN_ANSWER, Recorded, Recorder
from jaxobs.ops.diagnosis.gathering import bounded
from jaxobs.ops.diagnosis.gathering.http import shown
from jaxobs.ops.diagnosis.gathering.places import EVENT_LOG
from jaxobs.ops.diagnosis.result import Diagnosis


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A bundle that was made."""

    path: str
    sha256: str
    size: int
    """Bytes of the file."""
    manifest: Manifest
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class Bundle:
    """One that is open: what it holds is checked, and lies in a folder that is removed afterwards."""

    manifest: Manifest
    folder: Path

    def diagnosis(self) -> Diagnosis:
        """What this version of jaxobs makes of the evidence, at the time of the bundle."""
        clock, manifest = self.manifest.clock, self.manifest
        evidence = diagnosis.gather(
            Inputs(targets=manifest.targets, prometheus=manifest.prometheus),
            now=clock.now, window=clock.window, timeout=clock.timeout,
            answers=Recorded(self.folder, manifest.answers), read_files=staging.restored(self.folder, manifest.files),
        )  # fmt: skip
        return diagnosis.diagnose(evidence)

    @property
    def recorded(self) -> str:
        """The JSON text of the diagnosis that was made with the bundle."""
        return (self.folder / DIAGNOSIS).read_text(encoding="utf-8", errors="backslashreplace")


def write(
    inputs: Inputs, path: str, *, now: float | None = None,
    window: float = diagnosis.WINDOW, timeout: float = diagnosis.TIMEOUT,
) -> Written:  # fmt: skip
    """Collects the evidence into a new file, for its owner alone.

    Args:
      path: ends in `.tar.gz`, `.tgz` or `.zip`; a file that is there is replaced.
      now: the clock of the bundle, in seconds since the epoch; the present if None.
      window: seconds of history that a Prometheus is asked for.
      timeout: seconds that one answer may take.

    Raises:
      BundleError: the path has another ending, or cannot be written.
    """
    form = archives.form_of(path)
    clock = Clock(now=time.time() if now is None else now, window=window, timeout=timeout)
    with _folder() as folder:
        store = staging.Store(folder)
        files = tuple(staging.copied(store, inputs, clock.now))
        recorder = Recorder(store)
        evidence = diagnosis.gather(
            inputs, now=clock.now, window=window, timeout=timeout, answers=recorder,
            read_files=staging.restored(folder, files),
        )  # fmt: skip
        found = diagnosis.diagnose(evidence)
        store.add(as_text(found).encode(), DIAGNOSIS)
        manifest = Manifest(
            clock=clock, versions=manifests.versions(), files=files, answers=recorder.answers,
            targets=tuple(map(shown, inputs.targets)), prometheus=tuple(map(shown, inputs.prometheus)),
            masked=store.masked, entries=store.entries,
        )  # fmt: skip
        (folder / MANIFEST).write_bytes(manifest.as_bytes())
        archives.pack(form, folder, [MANIFEST, *sorted(store.entries)], path)
    return Written(path=path, sha256=_hash(path), size=os.path.getsize(path), manifest=manifest, diagnosis=found)


@contextlib.contextmanager
def opened(path: str) -> Iterator[Bundle]:
    """A bundle from outside, checked entry by entry before anything in it is used.

    Raises:
      BundleError: it is none, is damaged or was changed; the message names the entry.
    """
    with _folder() as folder:
        found = archives.unpack(path, folder)
        if MANIFEST not in found:
            raise BundleError(f"`{path}` is not a bundle of jaxobs: it has no `{MANIFEST}`.")
        manifest = manifests.read((folder / MANIFEST).read_bytes(), path)
        _check(path, found, manifest.entries)
        _check_uses(path, manifest)
        yield Bundle(manifest, folder)


def as_text(found: Diagnosis) -> str:
    """A diagnosis as `jaxobs diagnose --json` prints it."""
    return json.dumps(found.as_json(), indent=2, allow_nan=False) + "\n"


def _check(path: str, found: dict[str, Entry], said: dict[str, Entry]) -> None:
    for name in sorted({*found, *said} - {MANIFEST}):
        if name not in found:
            raise BundleError(f"`{path}`: the entry `{name}` is missing.")
        if name not in said:
            raise BundleError(f"`{path}`: the entry `{name}` is not in the manifest.")
        if found[name] != said[name]:
            raise BundleError(f"`{path}`: the entry `{name}` was changed: its SHA-256 is not that of the manifest.")
    if DIAGNOSIS not in said:
        raise BundleError(f"`{path}`: the entry `{DIAGNOSIS}` is missing.")


def _check_uses(path: str, manifest: Manifest) -> None:
    """Each entry is read once, and is no larger than what its reader takes."""
    uses = [
        (entry, staging.MOST_EVENT_LOG if file.kind == EVENT_LOG else 2 * bounded.MOST_BYTES)  # UTF-16 grows
        for file in manifest.files
        for entry in (file.head, file.tail)
    ] + [(answer.entry, MOST_OF_AN_ANSWER) for answer in manifest.answers]
    used: set[str] = set()
    for name, most in uses:
        if name is None:
            continue
        if name in used:
            raise BundleError(f"`{path}`: the entry `{name}` is used twice.")
        used.add(name)
        if (size := manifest.entries[name].size) > most:
            raise BundleError(
                f"`{path}`: the entry `{name}` has {size:,} bytes. At most {most:,} are read of its kind."
            )


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="jaxobs-bundle-")
    except OSError as error:
        raise BundleError(f"No temporary directory can be made: {error.strerror or error}.") from None
    with folder as name:
        yield Path(name)
