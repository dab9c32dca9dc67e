"""Serving, and the other views of `jaxobs agent`, from the arguments that its command line declares."""

import argparse
import dataclasses
import getpass
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from jaxobs.base import callers
from jaxobs.base.errors import SettingError
from jaxobs.base.files.claim import Claim
from jaxobs.ops import given_files
from jaxobs.ops.agent import serving, suggestions, summaries
from jaxobs.ops.agent.acting import policy
from jaxobs.ops.agent.acting.record import Record
from jaxobs.ops.agent.cluster import Cluster
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.loki import Loki
from jaxobs.ops.agent.sending import Destinations
from jaxobs.ops.agent.store import Store
from jaxobs.ops.agent.working import Agent
from jaxobs.ops.diagnosis.gathering import http
from jaxobs.views import client
from jaxobs.views.terminal.text import safe

APPROVE, DENY, RESET, STOP, RESUME, WAITING = "approve", "deny", "reset", "stop", "resume", "waiting"
SUMMARY = "summary"


def serve(args: argparse.Namespace, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    """Serves until SIGTERM or SIGINT; says where it listens."""
    if not args.prometheus:
        raise SettingError("Give --prometheus URL: the Prometheus to ask.")
    host, port = _listen(args.listen)
    for option in ("prometheus", "loki", "notify", "grafana", "pagerduty", "opsgenie", "webhook", "url"):
        if getattr(args, option):
            client.check_url(f"--{option}", getattr(args, option))
    if not 1 <= args.per_minute <= 1000:
        raise SettingError("--per-minute is a number of messages from 1 to 1000.")
    targets = tuple(client.endpoint_url(each) for each in args.target)
    if not 60 <= args.window <= 7 * 86_400:
        raise SettingError("--window is a number of seconds from 60 to 604800.")
    if not args.keep_days >= 1:
        raise SettingError("--keep-days is a number of days, 1 or more.")
    if not args.keep_mb >= 1:
        raise SettingError("--keep-mb is a number of megabytes, 1 or more.")
    if not 0 <= args.verify_after <= 86_400:
        raise SettingError("--verify-after is a number of seconds from 0 to 86400.")
    http.request(args.prometheus)  # a variable that cannot be used is an error now, not at the first alert
    if args.kubernetes not in ("", "true", "false"):
        raise SettingError("JAXOBS_AGENT_KUBERNETES is `true` or `false`.")
    pods = (*([Cluster()] if args.kubernetes == "true" else ()), *([Loki(args.loki)] if args.loki else ()))
    chosen = policy.read(Path(args.actions)) if args.actions else None
    desk = suggestions.desk(Path(args.reports), chosen, args.prometheus, targets) if chosen else None
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    store = Store(args.reports, keep_days=args.keep_days, keep_bytes=1e6 * args.keep_mb)
    claim = Claim(os.path.join(args.reports, "state", "agent"))
    other = claim.take()
    if other is not None:
        raise SettingError(f"--reports {args.reports!r} belongs to another agent: {other}. Each needs its own folder.")
    agent = Agent(
        store,
        Where(prometheus=args.prometheus, targets=targets, window=args.window, pods=pods),
        _destinations(args),
        settle=args.verify_after,
        desk=desk,
    )
    try:
        with serving.listening(host, port) as socket:
            listens = args.listen if port else f"{args.listen.rpartition(':')[0]}:{socket.getsockname()[1]}"
            say(f"jaxobs agent: http://{listens}/webhook, reports at http://{listens}/ and in {args.reports}")
            closed = callers.is_loopback(socket.getsockname()[0])
            if not args.token and not closed:
                warn(f"jaxobs agent: anyone who reaches {listens} can send webhooks. Set --token-file.")
            if not args.allow_host and not closed:
                warn(f"jaxobs agent: {listens} accepts requests for any host name. Set --allow-host NAME.")
            own = [urlsplit(args.url).hostname or ""] if args.url and (closed or args.allow_host) else []
            known = callers.known_hosts(host, [*args.allow_host, *own], closed=closed)
            serving.serve(agent, socket, serving.application(
                agent, args.token, known, read_token=args.read_token, is_shown=closed
            ))  # fmt: skip
    finally:
        claim.end()


def _destinations(args: argparse.Namespace) -> Destinations:
    given = {each.name: getattr(args, each.name, None) for each in dataclasses.fields(Destinations)}
    if args.webhook_template:
        given["template"] = given_files.text(Path(args.webhook_template))
    return Destinations(**{name: value for name, value in given.items() if value})


def control(args: argparse.Namespace) -> str:
    """Carries out what a person decides about safe actions, and returns what has become of it."""
    record = Record(Path(args.reports))
    if not record.directory.is_dir():
        raise SettingError(f"--reports {args.reports!r} is not a folder.")
    by = args.by or _user()
    try:
        if args.view in (APPROVE, DENY):
            if not args.incident:
                raise SettingError(f"Give the id of a plan. `jaxobs agent {WAITING}` lists those that wait.")
            plan = record.decide(args.incident, args.view == APPROVE, by)
            return f"{'Approved' if args.view == APPROVE else 'Denied'}: {safe(plan)}\n"
        if args.view == RESET:
            return f"The breaker is closed; there were {record.reset(by)} failures in a row.\n"
        if args.view == STOP:
            record.stop(by)
            return "The kill switch is on: nothing is done, and what is under way ends.\n"
        if args.view == RESUME:
            is_off = record.resume(by)
            return f"The kill switch is {'off.' if is_off else 'still on: JAXOBS_AGENT_STOP is set.'}\n"
        return "".join(f"{plan}  {safe(str(line.get('plan', '')))}\n" for plan, line in record.waiting().items())
    except OSError as error:
        raise SettingError(f"{args.reports}: {error.strerror or error}.") from None


def _user() -> str:
    """Returns the name of the user, who may have none in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def show(args: argparse.Namespace) -> str:
    """Returns a summary, or the draft of a postmortem."""
    if not os.path.isdir(args.reports):
        raise SettingError(f"--reports {args.reports!r} is not a folder.")
    store = Store(args.reports, writes=False)
    if args.view == SUMMARY:
        if not 0 < args.days <= 3660:
            raise SettingError("--days is a number of days from 1 to 3660.")
        return summaries.summary(store.reports(), time.time(), args.days)
    found = store.report(args.incident) if args.incident else None
    if found is None:
        known = [each.id for each in store.reports()][-5:]
        raise SettingError(f"There is no report {args.incident!r}. The latest: {', '.join(known) or 'none'}.")
    return summaries.postmortem(found)


def _listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 65_536:
        raise SettingError(f"--listen {text!r} is not an address. Give ADDR:PORT, such as 127.0.0.1:9465.")
    return host.strip("[]"), int(port)
