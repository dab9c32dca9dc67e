"""The agent at work: takes notifications in, keeps one incident for each subject, and works on those that are due."""

import contextlib
import datetime
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable

from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import investigating, payloads, suggestions
from jaxobs.ops.agent.acting.desk import Desk
from jaxobs.ops.agent.board import AGAIN, Board, Failing
from jaxobs.ops.agent.flood import Flood
from jaxobs.ops.agent.incidents import MOST_CHECKS, REPORTED, RESOLVING, WAITING, Incident, give_way
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.notifications import FIRING, Alert, Notification, RefusedError
from jaxobs.ops.agent.outbox import Outbox
from jaxobs.ops.agent.own_metrics import OwnMetrics
from jaxobs.ops.agent.payloads import Message
from jaxobs.ops.agent.report import Delivery, Report
from jaxobs.ops.agent.sending import Destinations
from jaxobs.ops.agent.store import Store
from jaxobs.ops.agent.subjects import Subject

_LOGGER = logging.getLogger("jaxobs.agent")

MOST_OPEN = 500
"""Open incidents; beyond, webhooks are refused, and Alertmanager sends them again. Twice as many if Prometheus reports
an alert on them."""
MOST_SUGGESTING = 1000
"""Reports whose suggestions wait for the desk."""
MOST_NOTED = 50
"""Reports in which a message about many of them is noted."""
WORKERS = 2
CROWD = 100
"""Open incidents from which on those come first of which Prometheus reports an alert."""
KEEP_EVERY = 60.0
"""Seconds between writes of what these have become, while too much is written."""
FORGOTTEN = 7 * 86_400.0
"""Seconds without a webhook after which an incident is verified and closed: nobody will say that it resolved."""


class Agent:
    """Agent without its HTTP server. Safe for threads."""

    def __init__(
        self, store: Store, where: Where, destinations: Destinations | None = None, *, settle: float = 60.0,
        desk: Desk | None = None,
    ) -> None:  # fmt: skip
        """Takes up the incidents that were open when the last agent ended.

        Args:
          settle: seconds between the end of the last alert and the verification.
          desk: decides on the actions that a report suggests; without it there are none.
        """
        self.store, self._where, self._settle = store, where, settle
        self._board = Board()
        self._flood = Flood(where.prometheus)
        store.wrote = self._flood.wrote
        self._changed = threading.Condition()
        self._stopping = False
        self._threads: list[threading.Thread] = []
        self._desk = desk
        self._suggesting: queue.Queue[Report | None] = queue.Queue(MOST_SUGGESTING)
        self._rewriting = threading.Lock()
        """Held from reading a report to writing it: nobody's change gets lost."""
        self._keeping = threading.Lock()
        """Held while a state is written or removed: an older one never replaces a newer one."""
        self.metrics = OwnMetrics(lambda: float(len(self._board.open)))
        store.removed = self.metrics.reports_removed.inc
        for each in store.open_incidents():
            self._board.open[each.whose().key] = each
        given = destinations or Destinations()
        self._outboxes = [Outbox(each, given, self._sent) for each in given.named()]

    def start(self) -> None:
        """Starts the threads of the agent."""
        told = [self.report(each.id) for each in self.incidents()] if self._outboxes else []
        for outbox in self._outboxes:
            outbox.restore(each for each in told if each is not None)
        work = [self._work] * WORKERS + [each.run for each in self._outboxes] + ([self._act] if self._desk else [])
        self._threads = [
            threading.Thread(target=each, daemon=True, name=f"jaxobs-agent-{number}")
            for number, each in enumerate(work)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """Ends the threads; the next agent takes up what is in work."""
        until = time.monotonic() + seconds
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for outbox in self._outboxes:
            outbox.stop()
        with contextlib.suppress(queue.Full):
            self._suggesting.put_nowait(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        for key in list(self._board.unkept):
            self._keep(key)

    @property
    def is_alive(self) -> bool:
        """Whether all threads of the agent run."""
        return bool(self._threads) and all(each.is_alive() for each in self._threads)

    @property
    def is_ready(self) -> bool:
        """Whether the agent takes webhooks."""
        return self.is_alive and not self._stopping

    # -------------------------------------------------------------------------------------------------- what comes in

    def accept(self, notification: Notification) -> list[str]:
        """Takes alerts in and returns the ids of their incidents. Nothing is investigated before it returns.

        Raises:
          RefusedError: there are too many incidents; those that are open have taken their alerts all the same.
        """
        now = time.time()
        by_subject: dict[Subject, list[Alert]] = {}
        for each in notification.alerts:
            by_subject.setdefault(each.subject, []).append(each)
        touched: dict[str, str] = {}
        vouched, is_full = set[str](), False
        with self._changed:
            for subject, alerts in by_subject.items():
                incident = self._board.open.get(subject.key)
                if incident is None:
                    if not any(each.status == FIRING for each in alerts):
                        continue  # It resolved, and nobody here knew that it fired.
                    is_reported = self._flood.reports(subject)
                    if len(self._board.open) >= MOST_OPEN * (1 + is_reported):
                        is_full = True
                        continue
                    if is_reported:
                        vouched.add(subject.key)
                    incident = self._new(subject, now)
                    self._board.open[subject.key] = incident
                incident.take(alerts, now, self._settle)
                self._board.stale.add(subject.key)
                touched[subject.key] = incident.id
            if is_full:
                give_way(self._board.open.values(), now)
            self._changed.notify_all()
        for key in touched:
            if self._flood.has_room() or key in vouched:
                self._keep(key)
            else:
                self._board.unkept.add(key)
        if is_full:
            raise RefusedError("too_many_incidents", f"{MOST_OPEN} incidents are open.")
        self.metrics.webhooks.inc()
        return list(touched.values())

    def _keep_some(self) -> None:
        """Writes the states that wait. While too much is written: now and then those that Prometheus reports."""
        now, board = time.monotonic(), self._board
        if not self._flood.has_room():
            if now < board.keep_again_at:
                return
            board.keep_again_at = now + KEEP_EVERY
        for key in list(board.unkept):
            incident = board.open.get(key)
            if incident is None or self._flood.has_room() or self._flood.reports(incident.whose()):
                board.unkept.discard(key)
                self._keep(key)

    def _new(self, subject: Subject, now: float) -> Incident:
        moment = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
        base = f"{moment:%Y%m%d-%H%M%S}-{subject.tag}"
        names = (base, *(f"{base}-{number}" for number in range(2, 100)))
        free = next(name for name in names if not self.store.has(name))
        return Incident(id=free, subject=list(subject.labels), opened_at=now, due_at=now, asked_at=now)

    def _keep(self, key: str) -> None:
        with self._keeping:
            with self._changed:
                current = self._board.open.get(key)
                kept = None if current is None else current.model_copy(deep=True)
            try:
                if kept is not None:
                    self.store.keep(kept)
            except OSError as error:
                self._cannot_write(kept.id if kept else key, error)

    def _cannot_write(self, name: str, error: OSError) -> None:
        self.metrics.write_errors.inc()
        _LOGGER.error("%s cannot be written: %s", name, error.strerror or error)

    # ---------------------------------------------------------------------------------------------------- what is due

    def _work(self) -> None:
        while True:
            if len(self._board.open) >= CROWD or not self._flood.has_room():
                self._flood.look()
            self._keep_some()
            with self._changed:
                if self.store.is_over:
                    give_way(self._board.open.values(), time.time())
                found = self._take_due()
                if found is None:
                    if self._stopping:
                        return
                    self._changed.wait(1.0)
                    continue
            key, incident = found
            try:
                self._work_on(key, incident)
                self._board.failing.pop(key, None)
            except Exception as error:
                _LOGGER.exception("Incident %s: %s", incident.id, type(error).__name__)
                self._failed(incident, error, self._board.failing.setdefault(key, Failing()))
            finally:
                with self._changed:
                    self._board.busy.discard(key)
            self._write_again()

    def _failed(self, incident: Incident, error: Exception, failing: Failing) -> None:
        """Reports the failure once, so that the alert is not lost, and has the work tried again."""
        self.metrics.investigations.labels("failed").inc()
        failing.again(time.time())
        if failing.attempts == 1 and self.report(incident.id) is None:
            report = investigating.unable(incident, error)
            self._write(report)
            self._say(report, payloads.REPORTED)

    def _take_due(self) -> tuple[str, Incident] | None:
        """Returns an incident to work on, as it is now; called under the lock."""
        if self._stopping:
            return None
        now, has_room, incidents = time.time(), self._flood.has_room(), self._board.open.items()
        is_quiet = has_room and len(incidents) < CROWD
        first = {key for key, each in incidents if is_quiet or self._flood.reports(each.whose())}
        for key, incident in sorted(incidents, key=lambda item: (item[0] not in first, item[1].due_at)):
            if not has_room and key not in first:
                break
            if key in self._board.busy or self._board.failing.get(key, Failing()).until > now:
                continue
            if incident.phase == REPORTED and incident.seen_at and now - incident.seen_at > FORGOTTEN:
                incident.phase, incident.resolved_at, incident.due_at = RESOLVING, now, now
            if incident.phase == REPORTED and incident.again_at is not None and incident.again_at <= now:
                incident.phase, incident.due_at, incident.asked_at = WAITING, now, now
            is_due = incident.phase in (WAITING, RESOLVING) and incident.due_at <= now
            if is_due or (has_room and key in self._board.stale and incident.phase != WAITING):
                self._board.busy.add(key)
                self._board.stale.discard(key)
                return key, incident.model_copy(deep=True)
        return None

    def _work_on(self, key: str, incident: Incident) -> None:
        if incident.phase == WAITING:
            self._investigate(key, incident)
        elif incident.phase == RESOLVING and incident.due_at <= time.time():
            self._close(key, incident)
        else:
            self._refresh(incident)

    def _investigate(self, key: str, incident: Incident) -> None:
        last = self.report(incident.id) or self.store.last_on(incident.whose())
        report = investigating.investigate(incident, self._where, last)
        self.metrics.investigations.labels(report.verdict).inc()
        self.metrics.seconds.observe(report.seconds)
        self.metrics.step_errors.inc(sum(each.outcome == "error" for each in report.steps))
        with self._rewriting:
            before = self.report(incident.id)
            if before is not None:
                report = report.model_copy(update={"deliveries": before.deliveries, "actions": before.actions})
            self._write(report)
        with self._changed:
            current = self._board.open[key]
            current.unconfirmed = all(each.confirmed is False for each in report.alerts)
            if current.asked_at == incident.asked_at:
                current.reported(time.time(), self._settle, report.verdict, complete=report.complete)
            else:
                current.revision += 1  # Another alert came meanwhile: once more.
        self._keep(key)
        if report.verdict == "no_fault" and report.severity == "info":
            return
        if before is not None and (before.verdict, before.fingerprint) == (report.verdict, report.fingerprint):
            return
        self._say(report, payloads.REPORTED)
        if self._desk is not None:
            with contextlib.suppress(queue.Full):
                self._suggesting.put_nowait(report)

    def _close(self, key: str, incident: Incident) -> None:
        report = self.report(incident.id)
        verification = None
        if report is not None:
            verification = investigating.verify(incident, report, self._where)
            if verification.result != "recovered" and self._check_again(key):
                return
        with self._changed:
            if self._board.open[key].phase != RESOLVING:
                return  # It fires again.
            del self._board.open[key]
            self._board.stale.discard(key)
        if report is not None and verification is not None:
            self.metrics.verifications.labels(verification.result).inc()
            with self._rewriting:
                closed = investigating.counted(self.report(incident.id) or report, incident).model_copy(
                    update={
                        "state": "closed", "verification": verification, "closed_at": verification.at,
                        "resolved_at": timestamp(incident.resolved_at or time.time()),
                    }
                )  # fmt: skip
                self._write(closed)
            self._say(closed, payloads.CLOSED)
        with self._keeping:
            self.store.forget(incident)

    def _check_again(self, key: str) -> bool:
        """Returns whether the incident is verified once more, about the time from now on."""
        with self._changed:
            incident = self._board.open[key]
            incident.checks += 1
            if incident.checks >= MOST_CHECKS:
                return False
            incident.checked_at = time.time()
            incident.due_at = incident.checked_at + max(1.0, self._settle) * 2**incident.checks
        self._keep(key)
        return True

    def _refresh(self, incident: Incident) -> None:
        with self._rewriting:
            report = self.report(incident.id)
            if report is not None:
                self._write(investigating.counted(report, incident))

    # -------------------------------------------------------------------------------------------------- what goes out

    def report(self, name: str) -> Report | None:
        """Returns the latest report of an incident; None if there is none."""
        return self._board.unwritten.get(name) or self.store.report(name)

    def _write(self, report: Report) -> None:
        try:
            self.store.write_report(report)
            self._board.unwritten.pop(report.id, None)
        except OSError as error:
            self._cannot_write(report.id, error)
            self._board.unwritten[report.id] = report

    def _write_again(self) -> None:
        now = time.time()
        if self._board.unwritten and now >= self._board.write_again_at:
            self._board.write_again_at = now + AGAIN
            with self._rewriting:
                for report in list(self._board.unwritten.values()):
                    self._write(report)

    def _say(self, report: Report, about: str) -> None:
        for outbox in self._outboxes:
            if not outbox.put(report, about):
                _LOGGER.error("Incident %s is not sent to %s: too many messages wait.", report.id, outbox.to.name)

    def _sent(self, message: Message, delivery: Delivery) -> None:
        """Notes in the reports what became of a message about them."""
        self.metrics.deliveries.labels(delivery.destination, delivery.result).inc()
        if delivery.result == "failed":
            _LOGGER.error("%s is not sent to %s: %s", message.key, delivery.destination, delivery.problem)
        for report in message.reports[:MOST_NOTED]:
            with self._rewriting:
                latest = self.report(report.id) or report
                self._write(latest.model_copy(update={"deliveries": [*latest.deliveries, delivery][-20:]}))

    def _act(self) -> None:
        assert self._desk is not None
        while not self._stopping:
            try:
                report = self._suggesting.get(timeout=suggestions.APPROVALS_EVERY)
                if report is None:
                    return
                suggestions.act(report, self._desk, self._change)
            except queue.Empty:
                suggestions.act_on_approvals(self._desk, self._change)
            except Exception as error:
                _LOGGER.exception("The actions of an incident: %s", type(error).__name__)

    def _change(self, name: str, fields: Callable[[Report], dict[str, object]]) -> None:
        with self._rewriting:
            latest = self.report(name)
            if latest is not None:
                self._write(latest.model_copy(update=fields(latest)))

    def incidents(self) -> Iterable[Incident]:
        """Returns the open incidents, as they are now."""
        with self._changed:
            return [each.model_copy(deep=True) for each in self._board.open.values()]
