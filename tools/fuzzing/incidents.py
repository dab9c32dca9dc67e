"""The readers of `jaxobs diagnose`: logs of jobs, event logs, metrics files, processes and answers of a Prometheus."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

from jaxobs.ops.diagnosis.gathering.http import NoAnswerError
from tools.fuzzing.answers import AnsweringOpener
from tools.fuzzing.changes import Changer
from tools.fuzzing.originals import Originals

LOG = """\
2026-01-31 09:00:00,000 INFO train: step 100 loss 2.2
[rank1]: 2026-01-31T09:00:01.5Z WARNING train: step 101 | loss nan
[1,2]<stderr>:host-a:29880:30398 [0] init.cc:497 NCCL WARN Duplicate GPU detected : rank 2 and rank 0
(EngineCore pid=7, ip=10.0.0.1) ERROR 01-31 09:00:02 [core.py:712] Traceback (most recent call last):
(EngineCore pid=7, ip=10.0.0.1) ERROR 01-31 09:00:02 [core.py:712]   File "/app/core.py", line 1, in f
(EngineCore pid=7, ip=10.0.0.1) ERROR 01-31 09:00:02 [core.py:712] jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: \
Out of memory while trying to allocate 2.00GiB.
E0131 09:00:03.000000  1201 coordination_service.cc:1402] The following tasks are unhealthy (stopped sending heartbeats)
F0131 09:00:03.100000  1201 client.h:80] Terminating process because the JAX distributed service detected fatal errors.
{"timestamp": "2026-01-31T09:00:04Z", "severity": "ERROR", "message": "OSError: [Errno 28] No space left", "rank": 3}
[Sat Jan 31 09:00:05 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.
Jan 31 09:00:06 host-b kernel: Memory cgroup out of memory: Killed process 1188 (python)
```
quoted
```
 50%|#####     | 50/100 [00:10<00:10,  5.0it/s]\r 51%|#####     | 51/100 [00:11<00:10,  5.0it/s]
*** SIGABRT received by PID 545434 (TID 545434) on cpu 25 from PID 545434; stack trace: ***
"""
METRICS = """\
# TYPE jax_steps_total counter
jax_steps_total{loop="train"} 9000
accelerator_xid_errors_total{xid="79",device="gpu:0"} 1
accelerator_throttled{reason="hw_thermal",host="a b\\"c\\\\"} 1 1769850000000
jax_compilations_total{function="train.step",cause="shape",cache="miss"} 1e3
"""
PROMETHEUS = {
    "alerts": {
        "status": "success",
        "data": {
            "alerts": [
                {
                    "labels": {"alertname": "JaxStraggler", "instance": "host-1:9464"},
                    "annotations": {"summary": "slow"}, "state": "firing", "activeAt": "2026-01-31T08:00:00Z",
                }
            ]
        },
    },
    "query_range": {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {
                    "metric": {"__name__": "accelerator_xid_errors_total", "xid": "79", "instance": "host-1:9464"},
                    "values": [[1769849000, "0"], [1769850000, "1"]],
                }
            ],
        },
    },
}  # fmt: skip

Case = Callable[[Changer], str]


class IncidentReaders:
    """Each gives `jaxobs diagnose` one source with one thing changed."""

    def __init__(self, originals: Originals, folder: Path, command: Callable[[list[str]], int]) -> None:
        self._originals = originals
        self._folder = folder
        self._command = command

    def all(self) -> Mapping[str, Case]:
        """By name."""
        return {
            "diagnose --log": self._log,
            "diagnose --event-log": self._event_log,
            "diagnose --metrics-file": self._metrics,
            "diagnose --prometheus": self._prometheus,
            "diagnose --target": self._target,
        }

    def _file(self, name: str, data: bytes) -> str:
        path = self._folder / name
        path.write_bytes(data)
        return str(path)

    def _log(self, changer: Changer) -> str:
        what, data = changer.words(LOG)
        self._command(["diagnose", "--json", "--log", self._file("worker-1.log", data)])
        self._command(["diagnose", "--log", self._file("worker-1.log", data)])
        return what

    def _event_log(self, changer: Changer) -> str:
        what, data = changer.lines(self._originals.files["events.jsonl"])
        self._command(["diagnose", "--json", "--event-log", self._file("incident.jsonl", data)])
        return what

    def _metrics(self, changer: Changer) -> str:
        what, data = changer.words(METRICS)
        self._command(["diagnose", "--json", "--metrics-file", self._file("incident.prom", data)])
        return what

    def _prometheus(self, changer: Changer) -> str:
        answers = {name: json.dumps(body).encode() for name, body in PROMETHEUS.items()}
        name = "alerts" if changer.number() % 2 else "query_range"
        what, answers[name] = changer.body(answers[name]) if changer.number() % 5 else changer.raw(answers[name])

        def fetch(url: str, timeout: float, **_: object) -> bytes:
            return answers["alerts" if "alerts" in url else "query_range"]

        with mock.patch("jaxobs.ops.diagnosis.gathering.http.fetch", fetch):
            self._command(["diagnose", "--json", "--prometheus", "http://127.0.0.1:1"])
        return f"{name}: {what}"

    def _target(self, changer: Changer) -> str:
        answers = {name: self._originals.files[name] for name in ("snapshot.json", "events.json")}
        name = "snapshot.json" if changer.number() % 3 else "events.json"
        what, answers[name] = changer.body(answers[name]) if changer.number() % 5 else changer.raw(answers[name])
        metrics = changer.words(METRICS)[1]

        def fetch(url: str, timeout: float, **_: object) -> bytes:
            if changer.number() % 7 == 0:
                raise NoAnswerError("HTTP 500")
            return metrics

        with (
            mock.patch("jaxobs.views.access.opener", lambda url, *_: AnsweringOpener(answers)),
            mock.patch("jaxobs.ops.diagnosis.gathering.http.fetch", fetch),
        ):
            self._command(["diagnose", "--json", "--target", "http://127.0.0.1:1"])
        return f"{name}: {what}"
