"""`jaxobs diagnose`: what happened to a job, from whatever it left."""

import argparse
import sys
from collections.abc import Iterator

from jaxobs.base.errors import JaxobsError
from jaxobs.base.version import __version__
from jaxobs.ops import diagnosis
from jaxobs.ops.diagnosis import bundles
from jaxobs.ops.diagnosis.result import NO_FAULT, REFUTED, SUPPORTED, Diagnosis, Hypothesis, Quote
from jaxobs.views import client
from jaxobs.views.terminal.text import safe

HELP = "find the cause of an incident: event logs, metrics, processes, Prometheus and job logs together"

FINE, FINDINGS = 0, 1
SCOPE = ("job", "namespace", "cluster")
"""Labels that select one job. An empty value does not filter: a runbook has one if the alert lacks the label."""

_EPILOG = """\
Repeat the options for sources to give several files or addresses. Give all the evidence that you have, above all the
logs of all processes: the process that reports an error is often a victim.
Exit codes: 0 no fault, 1 a cause or a likely one was found, or the evidence is inconclusive, 2 usage."""
_HEADLINES = {
    "cause": "Cause found.",
    "likely": "Likely cause: the evidence points to it, and other faults can show the same.",
    "inconclusive": "Inconclusive: the evidence does not show what started it.",
    "no_fault": "No fault: nothing in the evidence shows one.",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    add_sources(parser)
    parser.add_argument("--bundle", metavar="FILE", help="a file that `jaxobs bundle` wrote, without other sources")
    for label in SCOPE:
        parser.add_argument(
            f"--{label}", metavar="NAME", help=f"only series and alerts of the Prometheus whose label {label} is NAME"
        )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the diagnosis; 1 unless there is no fault.

    Raises:
      JaxobsError: nothing was given to look at, or a bundle that cannot be used.
    """
    found = _inputs_diagnosis(args) if args.bundle is None else _bundled(args)
    print(bundles.as_text(found) if args.json else "\n".join((*_lines(found), "")), end="")
    return FINE if found.verdict == NO_FAULT else FINDINGS


def _inputs_diagnosis(args: argparse.Namespace) -> Diagnosis:
    inputs = given_inputs(args)
    if inputs == diagnosis.Inputs():
        raise JaxobsError(
            "Nothing to look at. Give at least one of --log, --event-log, --metrics-file, --target and --prometheus."
        )
    scope = {label: getattr(args, label) for label in SCOPE if getattr(args, label)}
    return diagnosis.diagnose(diagnosis.gather(inputs, window=given_window(args), scope=scope))


def _bundled(args: argparse.Namespace) -> Diagnosis:
    if given_inputs(args) != diagnosis.Inputs():
        raise JaxobsError("`--bundle FILE` holds all evidence: leave the other sources out.")
    with bundles.opened(args.bundle) as bundle:
        found = bundle.diagnosis()
        if bundles.as_text(found) != bundle.recorded:
            made_by = safe(bundle.manifest.versions.get("jaxobs", "?"))
            print(
                f"jaxobs: `diagnosis.json` in the bundle, by jaxobs {made_by}, says something else than jaxobs "
                f"{__version__} says of the same evidence.",
                file=sys.stderr,
            )
        return found


def add_sources(parser: argparse.ArgumentParser, *, window: bool = True) -> None:
    """Declares where to look; with `window`, also how far back."""
    for option, word, text in (
        ("--log", "FILE", "the text of a job's log, of one process or of several"),
        ("--event-log", "FILE", "a file that --event-log wrote"),
        ("--metrics-file", "FILE", "metrics in Prometheus' text format, as --metrics-file writes them"),
        ("--target", "URL", "a running process: 9464, localhost:9464, http://host:9464"),
        ("--prometheus", "URL", "a Prometheus: http://prometheus:9090"),
    ):
        parser.add_argument(option, metavar=word, action="append", default=[], help=text)
    if not window:
        return
    parser.add_argument(
        "--window", type=float, default=diagnosis.WINDOW, metavar="SECONDS",
        help="seconds of history to query from a Prometheus (default: %(default)g)",
    )  # fmt: skip


def given_inputs(args: argparse.Namespace) -> diagnosis.Inputs:
    """Returns the sources among the arguments.

    Raises:
      JaxobsError: an address is not valid.
    """
    for each in args.prometheus:
        client.check_url("--prometheus", each)
    for each in args.target:
        client.endpoint_url(each)
    return diagnosis.Inputs(
        logs=tuple(args.log), event_logs=tuple(args.event_log), metrics_files=tuple(args.metrics_file),
        targets=tuple(args.target), prometheus=tuple(args.prometheus),
    )  # fmt: skip


def given_window(args: argparse.Namespace) -> float:
    """Returns seconds of history.

    Raises:
      JaxobsError: they are out of range.
    """
    if not 1 <= args.window <= 30 * 86_400:
        raise JaxobsError("--window is a number of seconds from 1 to 2592000.")
    return float(args.window)


def _lines(found: Diagnosis) -> Iterator[str]:
    yield _HEADLINES[found.verdict]
    for cause in found.causes:
        yield ""
        yield f"{safe(cause.title)}   [{cause.id}]   confidence {cause.confidence:.0%}"
        yield f"  do first:  {safe(cause.first_action)}"
        yield f"  where:     {safe(cause.component)}" + (f", since {cause.onset}" if cause.onset else "")
        if cause.where:
            yield f"  code:      {safe(cause.where)}"
        if cause.victims:
            yield f"  victims:   {safe(', '.join(cause.victims))}"
        if cause.consequences:
            yield f"  explains:  {', '.join(cause.consequences)}"
        yield from _quoted("evidence:", cause.evidence)
        if rest := cause.fix.removeprefix(cause.first_action).strip():
            yield f"  fix:       {safe(rest)}"
        yield f"  runbook:   {cause.runbook}"
    if found.changed:
        yield ""
        yield "Changed since an earlier start:"
    for change in found.changed:
        whose = f" of {change.process}" if change.process else ""
        values = f"from {change.before or 'nothing'} to {change.after or 'nothing'}"
        yield f"  {safe(f'{change.what}{whose}: {values} at {change.time}')}"
    named = {each.id for each in found.causes}
    yield from _considered(
        "Also seen:", [each for each in found.hypotheses if each.status == SUPPORTED and each.id not in named]
    )
    yield from _considered(
        "Ruled out:", [each for each in found.hypotheses if each.status == REFUTED and each.evidence]
    )
    if found.known:
        yield ""
        yield "Known incidents that read alike:"
    for incident in found.known:
        yield f"  {incident.what}"
        yield f"    cure:    {incident.cure}"
        yield f"    thread:  {incident.thread}"
    if found.missing:
        yield ""
        yield "Collect, or note:"
        yield from (f"  - {safe(each)}" for each in found.missing)


def _considered(title: str, hypotheses: list[Hypothesis]) -> Iterator[str]:
    if hypotheses:
        yield ""
        yield title
    for hypothesis in hypotheses:
        yield f"  {hypothesis.id}: {safe(hypothesis.because)}" if hypothesis.because else f"  {hypothesis.id}"
        yield from _quoted("", hypothesis.evidence[:1])


def _quoted(label: str, quotes: tuple[Quote, ...]) -> Iterator[str]:
    for quote in quotes:
        moment = f" {quote.time}" if quote.time else ""
        yield f"  {label:<10} {safe(quote.source)}:{quote.place}{moment} {safe(quote.process or '')}".rstrip()
        yield f"  {'':<10}   | {safe(quote.text)}"
        label = ""
