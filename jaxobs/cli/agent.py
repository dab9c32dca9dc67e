"""`jaxobs agent`: from an alert to a report with the cause, its evidence and what to do."""

from __future__ import annotations

import argparse
import getpass
import json
import logging
import math
import os
import sys
import time
from pathlib import Path

from jaxobs.base import callers
from jaxobs.base.errors import SettingError
from jaxobs.base.files.claim import Claim
from jaxobs.cli import token_in
from jaxobs.views import client
from jaxobs.views.terminal.text import safe

HELP = "take alerts in from Alertmanager and write reports: cause, evidence, what to do"

FINE = 0
TOKEN, NOTIFY, GRAFANA_TOKEN = "JAXOBS_AGENT_TOKEN", "JAXOBS_AGENT_NOTIFY", "JAXOBS_GRAFANA_TOKEN"
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
  JAXOBS_PROMETHEUS_TOKEN, JAXOBS_PROMETHEUS_HEADERS
                         bearer token, and headers (Name: value, one a line),
                         for --prometheus
  JAXOBS_ACTION_TOKEN    the processes' `action_token`, for --actions
  JAXOBS_AGENT_NOTIFY    the address of --notify, which other users cannot read there
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
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that webhooks must bring")
    parser.add_argument("--allow-host", metavar="NAME", action="append", default=[],
                        help="a host name that requests may use, besides the address and loopback; repeatable. Without "
                             "it, any name is answered unless --listen is loopback")  # fmt: skip
    parser.add_argument("--notify", metavar="URL", default="", help="webhook for Slack's payload: gets each result")
    parser.add_argument("--grafana", metavar="URL", default="", help="a Grafana that gets an annotation of each result")
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
    if args.view in CONTROLS:
        return _control(args)
    return _serve(args) if args.view == SERVE else _print(args)


def _control(args: argparse.Namespace) -> int:
    """Carries out what a person decides about safe actions."""
    from jaxobs.ops.agent.acting.record import Record

    record = Record(Path(args.reports))
    if not record.directory.is_dir():
        raise SettingError(f"--reports {args.reports!r} is not a folder.")
    by = args.by or _user()
    try:
        if args.view in (APPROVE, DENY):
            if not args.incident:
                raise SettingError(f"Give the id of a plan. `jaxobs agent {WAITING}` lists those that wait.")
            plan = record.decide(args.incident, args.view == APPROVE, by)
            print(f"{'Approved' if args.view == APPROVE else 'Denied'}: {safe(plan)}")
        elif args.view == RESET:
            print(f"The breaker is closed; there were {record.reset(by)} failures in a row.")
        elif args.view == STOP:
            record.stop(by)
            print("The kill switch is on: nothing is done, and what is under way ends.")
        elif args.view == RESUME:
            is_off = record.resume(by)
            print("The kill switch is off." if is_off else "The kill switch is still on: JAXOBS_AGENT_STOP is set.")
        else:
            for plan, line in record.waiting().items():
                print(f"{plan}  {safe(str(line.get('plan', '')))}")
    except OSError as error:
        raise SettingError(f"{args.reports}: {error.strerror or error}.") from None
    return FINE


def _user() -> str:
    """Returns the name of the user, who may have none in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def _print(args: argparse.Namespace) -> int:
    """Prints a summary, or the draft of a postmortem."""
    from jaxobs.ops.agent import summaries
    from jaxobs.ops.agent.store import Store

    if not os.path.isdir(args.reports):
        raise SettingError(f"--reports {args.reports!r} is not a folder.")
    store = Store(args.reports, writes=False)
    if args.view == SUMMARY:
        if not 0 < args.days <= 3660:
            raise SettingError("--days is a number of days from 1 to 3660.")
        print(summaries.summary(store.reports(), time.time(), args.days), end="")
        return FINE
    found = store.report(args.incident) if args.incident else None
    if found is None:
        known = [each.id for each in store.reports()][-5:]
        raise SettingError(f"There is no report {args.incident!r}. The latest: {', '.join(known) or 'none'}.")
    print(summaries.postmortem(found), end="")
    return FINE


def _serve(args: argparse.Namespace) -> int:
    if not args.prometheus:
        raise SettingError("Give --prometheus URL: the Prometheus to ask.")
    host, port = _listen(args.listen)
    args.notify = args.notify or os.environ.get(NOTIFY, "").strip()
    for option in ("prometheus", "notify", "grafana"):
        if getattr(args, option):
            client.check_url(f"--{option}", getattr(args, option))
    targets = tuple(client.endpoint_url(each) for each in args.target)
    if not 60 <= args.window <= 7 * 86_400:
        raise SettingError("--window is a number of seconds from 60 to 604800.")
    if not args.keep_days >= 1:
        raise SettingError("--keep-days is a number of days, 1 or more.")
    if not 0 <= args.verify_after <= 86_400:
        raise SettingError("--verify-after is a number of seconds from 0 to 86400.")
    token = token_in("--token-file", args.token_file) if args.token_file else os.environ.get(TOKEN, "").strip()
    from jaxobs.ops.agent import serving, suggestions
    from jaxobs.ops.agent.acting import policy
    from jaxobs.ops.agent.investigating import Where
    from jaxobs.ops.agent.sending import Destinations
    from jaxobs.ops.agent.store import Store
    from jaxobs.ops.agent.working import Agent
    from jaxobs.ops.diagnosis.gathering import http

    http.request(args.prometheus)  # a variable that cannot be used is an error now, not at the first alert
    desk = None
    if args.actions:
        chosen = policy.read(Path(args.actions))
        desk = suggestions.desk(Path(args.reports), chosen, args.prometheus, targets)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    store = Store(args.reports, keep_days=args.keep_days)
    claim = Claim(os.path.join(args.reports, "state", "agent"))
    other = claim.take()
    if other is not None:
        raise SettingError(f"--reports {args.reports!r} belongs to another agent: {other}. Each needs its own folder.")
    agent = Agent(
        store,
        Where(prometheus=args.prometheus, targets=targets, window=args.window),
        Destinations(notify=args.notify, grafana=args.grafana, grafana_token=os.environ.get(GRAFANA_TOKEN, "")),
        settle=args.verify_after,
        desk=desk,
    )
    try:
        with serving.listening(host, port) as socket:
            listens = args.listen if port else f"{args.listen.rpartition(':')[0]}:{socket.getsockname()[1]}"
            print(f"jaxobs agent: http://{listens}/webhook, reports in {args.reports}", flush=True)
            closed = callers.is_loopback(socket.getsockname()[0])
            if not token and not closed:
                print(f"jaxobs agent: anyone who reaches {listens} can send webhooks. Set --token-file.",
                      file=sys.stderr)  # fmt: skip
            serving.serve(agent, socket, token, callers.known_hosts(host, args.allow_host, closed=closed))
    finally:
        claim.end()
    return FINE


def _listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 65_536:
        raise SettingError(f"--listen {text!r} is not an address. Give ADDR:PORT, such as 127.0.0.1:9465.")
    return host.strip("[]"), int(port)
