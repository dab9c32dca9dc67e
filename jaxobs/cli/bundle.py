"""`jaxobs bundle`: the evidence of an incident in one file."""

import argparse
import json
import time
from collections.abc import Iterator

from jaxobs.base.errors import JaxobsError
from jaxobs.cli import diagnose
from jaxobs.facts.events import plain
from jaxobs.ops import diagnosis
from jaxobs.ops.diagnosis import bundles
from jaxobs.views.terminal.text import safe

HELP = "collect the evidence of an incident into one file, which gives the same diagnosis anywhere"

FINE = 0

_EPILOG = """\
Read it elsewhere with: jaxobs diagnose --bundle FILE
The file holds the logs and answers as they are, except for what looks like a secret. Look at it before you send it to
anyone: tar -tzf FILE
Exit codes: 0 the bundle was written, 2 usage."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    diagnose.add_sources(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="file to write: *.tar.gz, *.tgz or *.zip (default: incident-TIME.tar.gz in this directory)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Writes the bundle and prints what is in it.

    Raises:
      JaxobsError: there is nothing to collect, or the file cannot be written.
    """
    inputs = diagnose.given_inputs(args)
    if inputs == diagnosis.Inputs():
        raise JaxobsError(
            "Nothing to collect. Give at least one of --log, --event-log, --metrics-file, --target and --prometheus."
        )
    now = time.time()
    output = args.output or time.strftime("incident-%Y%m%dT%H%M%SZ.tar.gz", time.gmtime(now))
    made = bundles.write(inputs, output, now=now, window=diagnose.given_window(args))
    if args.json:
        said = {"path": made.path, "sha256": made.sha256, "size": made.size}
        found = {"manifest": plain(made.manifest), "diagnosis": made.diagnosis.as_json()}
        print(json.dumps(said | found, indent=2, allow_nan=False))
    else:
        print("\n".join(_lines(made)))
    return FINE


def _lines(made: bundles.Written) -> Iterator[str]:
    manifest = made.manifest
    yield f"{safe(made.path)}: {made.size:,} bytes, sha256 {made.sha256}"
    files = [each for each in manifest.files if each.problem is None]
    answers = [each for each in manifest.answers if each.problem is None]
    yield f"  files:   {len(files)} of {len(manifest.files)}"
    yield f"  answers: {len(answers)} of {len(manifest.answers)}"
    yield f"  masked:  {manifest.masked} texts that look like secrets"
    causes = ", ".join(each.id for each in made.diagnosis.causes)
    yield f"  verdict: {made.diagnosis.verdict}{f' ({causes})' if causes else ''}"
    yield from (f"  note:    {safe(each)}" for each in made.diagnosis.missing)
