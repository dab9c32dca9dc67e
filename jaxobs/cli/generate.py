"""`jaxobs generate`: writes what is generated, or checks that it is fresh."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jaxobs import generate

HELP = "write reference pages from the catalogue, or check that they are fresh"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("kind", choices=["all", *generate.kinds()], help="what to generate")
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="write into this folder")
    parser.add_argument("--check", action="store_true", help="write nothing; name what is stale and exit with 1")


def run(args: argparse.Namespace) -> int:
    """Runs the command; 1 when `--check` found a stale file."""
    wanted = generate.files(args.kind)
    if not args.check:
        changed = generate.write(wanted, args.out)
        print(f"{len(wanted)} files, {len(changed)} changed" + "".join(f"\n  {path}" for path in changed))
        return 0
    stale = generate.stale(wanted, args.out)
    if stale:
        print(f"{len(stale)} of {len(wanted)} generated files are stale:", *stale, sep="\n  ", file=sys.stderr)
        print(f"Write them anew with: jaxobs generate {args.kind}", file=sys.stderr)
        return 1
    print(f"{len(wanted)} generated files are fresh")
    return 0
