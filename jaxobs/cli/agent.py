"""`jaxobs agent`: from an alert to a report with the cause, its evidence and what to do."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from functools import partial

from jaxobs.base.errors import SettingError
from jaxobs.cli import token_in

HELP = "take alerts in from Alertmanager and write reports: cause, evidence, what to do"

FINE = 0
FILES = {
    "token": "JAXOBS_AGENT_TOKEN", "read_token": "JAXOBS_AGENT_READ_TOKEN", "pagerduty_key": "JAXOBS_PAGERDUTY_KEY",
    "opsgenie_key": "JAXOBS_OPSGENIE_KEY", "webhook_token": "JAXOBS_AGENT_WEBHOOK_TOKEN",
}  # fmt: skip
"""Variables that hold what the option with `-file` reads, by its name."""
VARIABLES = {
    "notify": "JAXOBS_AGENT_NOTIFY", "grafana_token": "JAXOBS_GRAFANA_TOKEN", "webhook": "JAXOBS_AGENT_WEBHOOK",
    "kubernetes": "JAXOBS_AGENT_KUBERNETES",
}  # fmt: skip
"""Variables that hold what must not be, or need not be, in the command line."""
SERVE, SUMMARY, POSTMORTEM, SCHEMA = "serve", "summary", "postmortem", "schema"
APPROVE, DENY, RESET, STOP, RESUME, WAITING = CONTROLS = "approve", "deny", "reset", "stop", "resume", "waiting"
_EPILOG = """\
examples:
  jaxobs agent --prometheus http://localhost:9090 --reports reports
  jaxobs agent summary --reports reports --days 7
  jaxobs agent postmortem 20260131-090500-train-1a2b3c --reports reports
  jaxobs agent schema

Environment:
  JAXOBS_AGENT_TOKEN     the bearer token of webhooks, instead of --token-file
  JAXOBS_AGENT_READ_TOKEN
                         the token of readers, instead of --read-token-file
  JAXOBS_PROMETHEUS_TOKEN, JAXOBS_PROMETHEUS_HEADERS
                         bearer token, and headers (Name: value, one a line),
                         for --prometheus
  JAXOBS_AGENT_KUBERNETES
                         true: as --kubernetes
  JAXOBS_ACTION_TOKEN    the processes' `action_token`, for --actions
  JAXOBS_AGENT_NOTIFY    the address of --notify, which other users cannot read there
  JAXOBS_PAGERDUTY_KEY, JAXOBS_OPSGENIE_KEY, JAXOBS_AGENT_WEBHOOK_TOKEN
                         instead of the file with that key or token
  JAXOBS_AGENT_WEBHOOK   the address of --webhook
  JAXOBS_GRAFANA_TOKEN   the token of a service account of Grafana, for --grafana

SIGTERM ends it; incidents that are open are taken up again at the next start. Exit codes: 0 ended, 2 usage."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("view", nargs="?", default=SERVE, metavar="VIEW",
                        choices=(SERVE, SUMMARY, POSTMORTEM, SCHEMA, *CONTROLS),
                        help="serve (default); summary, postmortem or schema; or, for safe actions, waiting, "
                             "approve, deny, reset, stop or resume")  # fmt: skip
    parser.add_argument("incident", nargs="?", metavar="ID",
                        help="the incident of a postmortem, or the plan to approve or deny")  # fmt: skip
    parser.add_argument("--listen", metavar="ADDR:PORT", default="127.0.0.1:9465",
                        help="where webhooks come in (default: %(default)s); port 0: a free one")  # fmt: skip
    parser.add_argument("--prometheus", metavar="URL", help="the Prometheus to ask")
    parser.add_argument("--reports", metavar="DIR", help="where reports and state are kept")
    parser.add_argument("--target", metavar="URL", action="append", default=[],
                        help="a process to ask besides those that Prometheus scrapes; repeatable")  # fmt: skip
    parser.add_argument("--kubernetes", action="store_const", const="true", default="",
                        help="read pods, events, nodes and ReplicaSets of the jobs, in the cluster that the agent runs "
                             "in or a kubeconfig names")  # fmt: skip
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that webhooks must bring")
    parser.add_argument(
        "--read-token-file", metavar="FILE", help="file with the token that readers of reports must show"
    )
    parser.add_argument(
        "--url", metavar="URL", default="", help="the address at which people reach the agent, for links"
    )
    parser.add_argument("--allow-host", metavar="NAME", action="append", default=[],
                        help="a host name that requests may use, besides the address and loopback; repeatable. Without "
                             "it, any name is answered unless --listen is loopback")  # fmt: skip
    parser.add_argument("--notify", metavar="URL", default="", help="webhook for Slack's payload: gets each result")
    parser.add_argument("--grafana", metavar="URL", default="", help="a Grafana that gets an annotation of each result")
    parser.add_argument("--pagerduty-key-file", metavar="FILE", help="integration key of a service of PagerDuty")
    parser.add_argument("--pagerduty", metavar="URL", help="PagerDuty's events (default: https://events.pagerduty.com)")
    parser.add_argument("--opsgenie-key-file", metavar="FILE", help="key of an API integration of Opsgenie")
    parser.add_argument("--opsgenie", metavar="URL", help="Opsgenie's API (default: https://api.opsgenie.com)")
    parser.add_argument("--webhook", metavar="URL", default="", help="a webhook that gets each result as JSON")
    parser.add_argument("--webhook-template", metavar="FILE", help="JSON with $names for --webhook")
    parser.add_argument("--webhook-token-file", metavar="FILE", help="bearer token for --webhook")
    parser.add_argument("--per-minute", metavar="N", type=int, default=10,
                        help="messages to each in a minute; more are summed up (default: %(default)d)")  # fmt: skip
    parser.add_argument("--actions", metavar="FILE", help="policy of safe actions; without it there are none")
    parser.add_argument(
        "--by", metavar="NAME", help="name for the record of approve, deny and reset (default: the user)"
    )
    parser.add_argument("--days", type=float, default=7.0, help="days of a summary (default: %(default)g)")
    parser.add_argument("--keep-days", metavar="DAYS", type=float, default=math.inf,
                        help="remove reports of closed incidents that are older (default: keep all)")  # fmt: skip
    parser.add_argument("--window", metavar="SECONDS", type=float, default=3600.0,
                        help="history to look at, at least (default: %(default)g)")  # fmt: skip
    parser.add_argument("--verify-after", metavar="SECONDS", type=float, default=30.0,
                        help="time from the end of the alerts to the verification (default: %(default)g)")  # fmt: skip


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
