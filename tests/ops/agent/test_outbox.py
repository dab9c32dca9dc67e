"""Messages that wait: those of one cause become one, and however many come, a minute has its bound."""

from typing import Any

import pytest
from helpers.written_reports import made

from jaxobs.ops.agent.grouping import CommonCause
from jaxobs.ops.agent.outbox import Outbox
from jaxobs.ops.agent.payloads import CLOSED, REPORTED, Message
from jaxobs.ops.agent.report import Delivery, Report
from jaxobs.ops.agent.sending import Destinations


def report(job: str, text: str = "", *, confirmed: bool | None = True, node: str = "", **more: Any) -> Report:
    """A report on a job whose evidence has a text."""
    base = made(1, id=f"20260130-090000-{job}-abcdef", subject={"name": job, "labels": {"job": job}}, **more)
    cause = base.causes[0].model_copy(update={"component": f"{job}-0"})
    alert = base.alerts[0].model_copy(update={"confirmed": confirmed, "labels": {"node": node}})
    context = base.context.model_copy(update={"version_changes": []})
    evidence = [base.evidence[0].model_copy(update={"text": text or f"nothing of {job}"})]
    return base.model_copy(update={"causes": [cause], "alerts": [alert], "evidence": evidence, "context": context})


class Sent:
    """An outbox on a clock of its own."""

    def __init__(self, per_minute: int = 10) -> None:
        self.now = 0.0
        given = Destinations(pagerduty_key="k", per_minute=per_minute)
        self.box = Outbox(next(iter(given.named())), given, lambda message, delivery: None, lambda: self.now)

    def put(self, *reports: Report, about: str = REPORTED) -> None:
        assert all(self.box.put(each, about) for each in reports)

    def after(self, seconds: float) -> list[Message]:
        """Returns the messages of so many seconds from now."""
        found: list[Message] = []
        for _ in range(int(seconds)):
            self.now += 1
            while (message := self.box.take()) is not None:
                found.append(message)
        return found


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("OSError: [Errno 5] '/mnt/cache/a/x'", "cannot write /mnt/cache/b: Input/output error", True),
        ("OSError: '/mnt/cache/a'", "OSError: '/mnt/data/a'", False),
        ("File '/app/train.py', line 3", "File '/app/train.py', line 9", False),
        ("reading gs://bucket/a failed", "reading gs://bucket/b failed", True),
        ("http://a.example.org/api/v1/query", "http://b.example.org/api/v1/query", False),
    ],
)
def test_one_cause_is_the_same_fault_at_one_place(first: str, second: str, alike: bool) -> None:
    one, two = CommonCause.of(report("a", first)), CommonCause.of(report("b", second))
    assert one.is_that_of(two) == alike
    assert not one.is_that_of(CommonCause("another", two.places))
    assert not CommonCause.of(report("a", first, verdict="inconclusive")).is_that_of(two)
    here, there = CommonCause.of(report("a", node="n1")), CommonCause.of(report("b", node="n1"))
    assert here.is_that_of(there)


def test_forty_jobs_on_one_volume_are_one_message_and_end_as_one() -> None:
    sent, jobs = Sent(), [report(f"job-{number}", f"EIO at /mnt/cache/{number}") for number in range(40)]
    sent.put(*jobs[:30], report("other"))
    assert sent.after(4) == []
    together, other = sorted(sent.after(2), key=lambda each: len(each.reports), reverse=True)
    assert (len(together.reports), together.is_mixed, len(other.reports)) == (30, False, 1)
    sent.put(*jobs[30:])
    assert sent.after(50) == []
    (more,) = sent.after(20)
    assert (more.key, len(more.reports)) == (together.key, 10)
    sent.put(*jobs[:39], about=CLOSED)
    assert sent.after(100) == []
    sent.put(jobs[39], about=CLOSED)
    (ended,) = sent.after(1)
    assert (ended.key, ended.about, len(ended.reports)) == (together.key, CLOSED, 40)


def test_what_is_too_much_is_summed_up_and_a_true_alert_goes_first() -> None:
    sent = Sent()
    sent.put(*(report(f"forged-{number}", confirmed=False) for number in range(500)))
    flood = sent.after(6)
    assert [len(each.reports) for each in flood] == [1, 1, 1, 1, 496] and flood[-1].is_mixed
    sent.put(*(report(f"more-{number}", confirmed=False) for number in range(200)), report("true"))
    (true,) = sent.after(40)
    assert true.first.subject.name == "true" and len(true.reports) == 1
    assert sum(len(each.reports) for each in sent.after(60)) == 200, "nothing is lost"
    sent = Sent(per_minute=3)
    sent.put(*(report(f"job-{number}", severity="warning") for number in range(20)), report("bad", severity="critical"))
    assert [len(each.reports) for each in sent.after(50)] == [1, 1, 19]


def test_an_agent_that_starts_again_ends_what_it_began_and_says_what_it_had_not() -> None:
    told = Delivery(destination="pagerduty", about=REPORTED, at="", result="sent", attempts=1, problem="", key="lead")
    jobs = [report("a", deliveries=[told]), report("b", deliveries=[told]), report("c")]
    sent = Sent()
    sent.box.restore(jobs)
    (new,) = sent.after(6)
    assert new.reports == (jobs[2],)
    sent.put(jobs[0], jobs[1], about=CLOSED)
    assert [(each.key, each.about) for each in sent.after(1)] == [("lead", CLOSED)]
    sent.put(report("never-said"))
    sent.put(report("never-said"), about=CLOSED)
    assert sent.after(60) == []
