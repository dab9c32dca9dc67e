"""Coverage-guided fuzzing of the readers by Atheris, in an environment of its own: each reader in a process of its own.

Atheris (libFuzzer) writes bytes that decide which changes are made to a valid original, and keeps those bytes that lead
into code which no bytes led into before. The readers and the changes are those of `tools.fuzz_readers`.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools import environments
from tools.fuzzing import originals
from tools.fuzzing.changes import Changer

ROOT = Path(__file__).resolve().parents[2]
PART = "guided"
HEAD = ["| reader | inputs tried | kept for new coverage | branches reached | |", "|---|---:|---:|---:|---|"]
MOST_CHANGES = 4
HANGS_AFTER = 60
MOST_MEMORY = 4096
"""MiB of a process, which Atheris ends beyond."""


class Decided(Random):
    """Random numbers that bytes decide; zeros after their end."""

    def __init__(self, data: bytes) -> None:
        self._rest = data
        super().__init__(0)

    def getrandbits(self, k: int, /) -> int:
        """Returns an integer of `k` bits."""
        count = (k + 7) // 8
        taken, self._rest = self._rest[:count], self._rest[count:]
        return int.from_bytes(taken.ljust(count, b"\0"), "little") >> (8 * count - k)

    def random(self) -> float:
        """Returns a number of at least 0 and below 1."""
        return self.getrandbits(32) / 2**32


class GuidedChanger(Changer):
    """Up to four changes, one after another, as the bytes decide."""

    def __init__(self, data: bytes) -> None:
        decided = Decided(data)
        super().__init__(decided)
        self._once = Changer(decided)

    def lines(self, data: bytes) -> tuple[str, bytes]:
        """Returns the names of the changes, and lines of JSON with these changes."""
        return self._repeated(self._once.lines, data)

    def body(self, data: bytes) -> tuple[str, bytes]:
        """Returns the names of the changes, and a JSON text with these changes."""
        return self._repeated(self._once.body, data)

    def raw(self, data: bytes) -> tuple[str, bytes]:
        """Returns the names of the changes, and bytes with these changes."""
        return self._repeated(self._once.raw, data)

    def _repeated(self, change: Callable[[bytes], tuple[str, bytes]], data: bytes) -> tuple[str, bytes]:
        made = []
        for _ in range(1 + self.number() % MOST_CHANGES):
            try:
                name, data = change(data)
            except (ValueError, RecursionError, IndexError):  # the changes before left no valid text
                name, data = self._once.raw(data)
            made.append(name)
        self.told = "; ".join(made)
        return self.told, data


@dataclass(frozen=True)
class Row:
    """A reader, and what Atheris reached in it."""

    reader: str
    inputs: int
    kept: int
    branches: int
    problem: str = ""

    def row(self) -> str:
        """Returns it as Markdown."""
        state = "held" if not self.problem else "**not held**"
        return f"| {self.reader} | {self.inputs:,} | {self.kept:,} | {self.branches:,} | {state} |"


def every(seconds: int, only: Sequence[str] = ()) -> Iterator[Row]:
    """Fuzzes each reader, or those named, for so many seconds, and yields its row as soon as its time is over.

    Raises:
      NoInterpreterError: Atheris has no wheel for any Python of this machine.
      InstallError: Atheris could not be installed.
    """
    python = str(environments.environment(environments.FUZZ))
    with tempfile.TemporaryDirectory(prefix="jaxobs-guided-") as name:
        folder = Path(name)
        made = originals.make(folder)
        (folder / "originals.pickle").write_bytes(pickle.dumps(made))
        command = [python, "-m", "tools.fuzzing.guided", str(folder)]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
        for reader in [each for each in names if not only or each in only]:
            corpus = folder / "corpus"
            corpus.mkdir(exist_ok=True)
            fuzzing = [
                *command, reader, f"-max_total_time={seconds}", "-max_len=256", f"-timeout={HANGS_AFTER}",
                f"-rss_limit_mb={MOST_MEMORY}", "-detect_leaks=0", "-print_final_stats=1",
                f"-artifact_prefix={folder}/", str(corpus),
            ]  # fmt: skip
            variables = {**os.environ, "JAX_PLATFORMS": "cpu"}
            done = subprocess.run(
                fuzzing, cwd=ROOT, env=variables, capture_output=True, text=True, errors="replace", check=False
            )
            yield _row(reader, done)
            for each in corpus.iterdir():
                each.unlink()


def table(rows: Sequence[Row], seconds: int) -> str:
    """Returns the table of Markdown, and the sum above it."""
    held, inputs = sum(not each.problem for each in rows), sum(each.inputs for each in rows)
    total = f"{held} of {len(rows)} readers held, {seconds} s each, {inputs:,} inputs."
    return "\n".join([total, "", *HEAD, *(each.row() for each in rows)])


def _row(reader: str, done: subprocess.CompletedProcess[str]) -> Row:
    said = f"{done.stderr}\n{done.stdout}"
    branches = [int(each) for each in re.findall(r"\bcov: (\d+)", said)]
    kept = [int(each) for each in re.findall(r"\bcorp: (\d+)", said)]
    inputs = [int(each) for each in re.findall(r"^(?:stat::number_of_executed_units: |#)(\d+)", said, re.MULTILINE)]
    problem = "" if done.returncode == 0 else f"{reader}, exit code {done.returncode}: {said[-3000:]}"
    return Row(reader, max(inputs, default=0), max(kept, default=0), max(branches, default=0), problem)


def main() -> None:
    """Fuzzes the reader that the second argument names; without it, prints the readers' names."""
    folder, *rest = sys.argv[1:]
    if not rest:
        from tools.fuzzing.readers import Readers

        print(*Readers(pickle.loads((Path(folder) / "originals.pickle").read_bytes())).all(), sep="\n")
        return
    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["jaxobs"]):
        from tools.fuzzing.readers import Readers
    case = Readers(pickle.loads((Path(folder) / "originals.pickle").read_bytes())).all()[rest[0]]

    def one(data: bytes) -> None:
        changer = GuidedChanger(data)
        try:
            case(changer)
        except Exception as error:
            error.add_note(f"after: {changer.told}")
            raise

    atheris.Setup([sys.argv[0], *rest[1:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
