"""`jaxobs agent`: from an alert to a report with the cause, its evidence and what to do."""

import argparse
import json
import os
import sys
import tomllib
from functools import partial
from importlib import resources

from jaxobs.base.errors import SettingError
from jaxobs.cli import token_in

HELP = "receive alerts from Alertmanager, find the cause, and write a report"

FINE = 0
FILES = {
    "token": "JAXOBS_AGENT_TOKEN", "read_token": "JAXOBS_AGENT_READ_TOKEN", "pagerduty_key": "JAXOBS_PAGERDUTY_KEY",
    "opsgenie_key": "JAXOBS_OPSGENIE_KEY", "webhook_token": "JAXOBS_AGENT_WEBHOOK_TOKEN",
}  # fmt: skip
"""Variables that hold what the option with `-file` reads, by its name."""
VARIABLES = {
    "notify": "JAXOBS_AGENT_NOTIFY", "grafana_token": "JAXOBS_GRAFANA_TOKEN", "webhook": "JAXOBS_AGENT_WEBHOOK",
    "kubernetes": "JAXOBS_AGENT_KUBERNETES", "loki": "JAXOBS_LOKI",
}  # fmt: skip
"""Variables that hold what must not be, or need not be, in the command line."""
SERVE, SUMMARY, POSTMORTEM, SCHEMA = "serve", "summary", "postmortem", "schema"
APPROVE, DENY, RESET, STOP, RESUME, WAITING = CONTROLS = "approve", "deny", "reset", "stop", "resume", "waiting"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    declared = tomllib.loads((resources.files(__package__) / "agent.toml").read_text(encoding="utf-8"))
    parser.epilog = declared["epilog"]
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for fields in declared["arguments"]:
        if "type" in fields:
            fields["type"] = {"float": float, "int": int}[fields["type"]]
        parser.add_argument(fields.pop("name"), **fields)


def run(args: argparse.Namespace) -> int:
    """Serves until it is ended, or prints what was asked for.

    Raises:
      JaxobsError: an argument does not fit, or the extra is not installed.
    """
    if args.incident is not None and args.view not in (POSTMORTEM, APPROVE, DENY):
        raise SettingError(f"`jaxobs agent {args.view}` takes no incident.")
    if args.view == SCHEMA:
        from jaxobs.ops.agent import report

        print(json.dumps(report.schema(), indent=2))
        return FINE
    if not args.reports:
        raise SettingError("Give --reports DIR: the folder of the reports.")
    from jaxobs.ops.agent import commands

    if args.view != SERVE:
        print(commands.control(args) if args.view in CONTROLS else commands.show(args), end="")
        return FINE
    for name, variable in (VARIABLES | FILES).items():
        file = getattr(args, f"{name}_file", None)
        given = token_in(f"--{name.replace('_', '-')}-file", file) if file else getattr(args, name, "")
        setattr(args, name, given or os.environ.get(variable, "").strip())
    commands.serve(args, partial(print, flush=True), partial(print, file=sys.stderr))
    return FINE
