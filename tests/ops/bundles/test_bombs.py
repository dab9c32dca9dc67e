"""Bundles made to fill memory, disk or time: refused at the header, with the entry, its value and the bound."""

import gzip
import hashlib
import json
import re
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.incidents.scenarios import EPOCH
from jaxobs.ops.diagnosis import Inputs, bundles
from jaxobs.ops.diagnosis.gathering import unpacking

BOMB = bytes(64 * 2**20)
MOST_TAKEN = 16 * 2**20
"""Bytes of memory for an archive that unpacks to more than three times as much."""


def header(name: str = "manifest.json", size: bytes = b"%011o\0" % len(BOMB), kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header whose field of the size holds these bytes."""
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
    block[124:136], block[156:157], block[148:156] = size, kind, b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def made(folder: Path) -> dict[str, bytes]:
    """The entries of a sound bundle."""
    (folder / "train.log").write_text("step 1\n")
    bundles.write(Inputs(logs=(str(folder / "train.log"),)), str(folder / "sound.zip"), now=EPOCH)
    with zipfile.ZipFile(folder / "sound.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def refused(path: Path) -> str:
    """Returns the message of the refusal, which takes little memory to find."""
    tracemalloc.start()
    try:
        with pytest.raises(bundles.BundleError) as caught, bundles.opened(str(path)):
            pass
        assert tracemalloc.get_traced_memory()[1] < MOST_TAKEN
    finally:
        tracemalloc.stop()
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (header(size=b"\xff" * 12), "`manifest.json` has -1 bytes, as its header says. Expected 0 to 8,388,608."),
        (header(size=b"-0000000001\0"), "the entry `manifest.json` has -1 bytes"),
        (header(size=b"\x80" + bytes(3) + b"\xff" * 8), "has 18,446,744,073,709,551,615 bytes"),
        (header("evidence/0001", b"%011o\0" % (2**30 + 1)), "has 1,073,741,825 bytes, as its header says."),
        (header("diagnosis.json"), "has 67,108,864 bytes, as its header says. Expected 0 to 33,554,432."),
        (header(size=b"zzzzzzzzzzz\0"), "is damaged: byte 0 of what it unpacks to begins no entry: invalid header."),
        (header("evidence/0001", kind=tarfile.GNUTYPE_SPARSE), "`evidence/0001` is an extension of the format."),
        (header(kind=tarfile.XHDTYPE), "is an extension of the format"),
        (header(kind=tarfile.GNUTYPE_LONGNAME), "is an extension of the format"),
        (header(kind=tarfile.CONTTYPE), "is an extension of the format"),
        (header("evid\udcff"), "the entry `evid` has a name that no entry of a bundle has."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_header_that_lies_is_refused(block: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(block + BOMB, 1))
    assert said in refused(path)


def test_what_an_entry_is_used_for_bounds_it(tmp_path: Path) -> None:
    """An entry is no larger than what a bundle keeps of its kind, and is read once."""
    entries = made(tmp_path)
    manifest: dict[str, Any] = json.loads(entries["manifest.json"])
    [file] = manifest["files"]
    for change, evidence, said in (
        ({"files": [file] * 1000}, entries["evidence/0000"], "is used twice."),
        ({"answers": [{"address": "a", "entry": "evidence/0000"}]}, entries["evidence/0000"], "is used twice."),
        (
            {"files": [file | {"size": len(BOMB)}]},
            BOMB,
            "has 67,108,864 bytes. At most 33,554,432 are read of its kind.",
        ),
    ):
        entries["evidence/0000"] = evidence
        entries["manifest.json"] = json.dumps(manifest | change | {"entries": dict(_listed(entries))}).encode()
        with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        assert f"the entry `evidence/0000` {said}" in refused(tmp_path / "bomb.zip")


def _listed(entries: dict[str, bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, data in entries.items():
        if name != "manifest.json":
            yield name, {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


@pytest.mark.parametrize("count", [20_000, 70_000])
def test_a_long_list_of_a_zip_file_is_not_read(count: int, tmp_path: Path) -> None:
    """`zipfile` makes an object of each entry in it."""
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            archive.writestr(zipfile.ZipInfo(f"evidence/{number}"), b"")
    listed = r"is damaged: its list of entries has [\d,]+ bytes, and at most 640,000 are read\."
    many = r"is damaged: it is cut off, has a comment, or more than 65,535 entries\."
    assert re.search(listed if count < 2**16 else many, refused(path))


def test_an_entry_of_a_zip_file_that_unpacks_to_much(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("manifest.json", BOMB)
    said = "the entry `manifest.json` has 67,108,864 bytes, as its header says. Expected 0 to 8,388,608."
    assert said in refused(path)


def test_streams_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of gzip that holds nothing has 20 bytes, and costs as much as one that holds much."""
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 1000)
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(b"") * 1001)
    assert "is damaged: it has more than 1,000 streams." in refused(path)
    path.write_bytes(gzip.compress(b"") * 1000)
    assert "has no `manifest.json`" in refused(path)
