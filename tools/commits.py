"""Checks the messages of commits: `room: imperative`, at most 72 characters, and a body that says why.

python -m tools.commits                  checks the commits since BASE, as `make lint` does
python -m tools.commits main..HEAD       checks those of a branch
python -m tools.commits --message FILE   checks one message, as tools/hooks/commit-msg does
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = "b7a43287e76a517e398dbb98ee34af9beb66ba8d"
"""Commits up to this one, which nobody checked, are left as they are."""
LONGEST = 72
_SUBJECT = re.compile(r"[a-z_/.-]+: (?P<verb>[a-z]\S*).*[^.\s]")
_NOT_IMPERATIVE = re.compile(r"(?!(?:alias|bring|embed|exceed|feed|need|proceed|seed|shed|speed)$)\w+(?:ed|ing|[^su]s)")
_TRAILER = re.compile(r"[A-Z][\w-]+: \S.*")
_AUTOMATIC = ("Merge ", "deps: ")
"""Beginnings of the subjects that git and the update bot write."""


def mistakes(message: str) -> Iterator[str]:
    """Yields what is wrong with a commit's message, a sentence each."""
    subject, *body = _written(message) or [""]
    if subject.startswith(_AUTOMATIC):
        return
    if len(subject) > LONGEST:
        yield f"The subject has {len(subject)} characters, at most {LONGEST} are allowed."
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        yield "The subject is not `room: imperative`: a room, a colon, a lower-case verb, no full stop."
    elif _NOT_IMPERATIVE.fullmatch(found["verb"]):
        yield f"`{found['verb']}` is not an imperative: write `add`, not `added`, `adds` or `adding`."
    if body and body[0]:
        yield "A blank line has to follow the subject."
    if not any(line and not _TRAILER.fullmatch(line) for line in body):
        yield "There is no body: say in a line or more why the change is made."


def _written(message: str) -> list[str]:
    """Returns the lines that git keeps of a message: none that begins with `#`, and nothing below the scissors."""
    kept = message.partition("# ------------------------ >8")[0]
    return "\n".join(line.rstrip() for line in kept.splitlines() if not line.startswith("#")).strip().splitlines()


def check(commits: str) -> int:
    """Checks a range of commits, and prints what is wrong; returns the exit code."""
    if _git("rev-parse", "--show-toplevel").strip() != str(ROOT):
        print("commits: not checked, this folder has no history of its own")
        return 0
    base = commits.partition("..")[0]
    if not _git("merge-base", base, "HEAD"):
        print(f"commits: not checked, this history does not reach back to {base[:12]}")
        return 0
    wrong = 0
    for commit in _git("rev-list", "--no-merges", commits).split():
        message = _git("show", "--no-patch", "--format=%B", commit)
        for mistake in mistakes(message):
            wrong += 1
            print(f"{commit[:12]} {message.splitlines()[0]}\n    {mistake}", file=sys.stderr)
    return 1 if wrong else 0


def _git(*arguments: str) -> str:
    # In CI's container the folder is another user's.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns 1 if a message is refused, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.commits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("commits", nargs="?", default=f"{BASE}..HEAD", metavar="BASE..HEAD", help="range of commits")
    parser.add_argument("--message", type=Path, metavar="FILE", help="a file with one message, instead of a range")
    given = parser.parse_args(arguments)
    if given.message is None:
        return check(given.commits)
    found = list(mistakes(given.message.read_text(encoding="utf-8")))
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
