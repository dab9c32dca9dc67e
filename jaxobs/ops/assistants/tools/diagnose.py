"""Diagnoses the job."""

from collections.abc import Callable
from typing import Annotated

from jaxobs.ops import diagnosis
from jaxobs.ops.assistants.answers import Answer, Field, Sources, no_data, ok
from jaxobs.ops.diagnosis import Inputs
from jaxobs.ops.diagnosis.result import REFUTED, SUPPORTED


def make(sources: Sources) -> Callable[..., Answer]:
    def diagnose(minutes: Annotated[int, Field(ge=1, le=1440)] = 60) -> Answer:
        """The cause of an incident from all sources together: logs, event logs, metrics, processes, Prometheus.

        `cause`: named with evidence, the one that started it first. `likely`: other faults can show the same, and
        `confidence` is how often such evidence was right. `inconclusive`: something happened, and `missing` says what
        to collect. `no_fault`: nothing shows one. `minutes` is how far back a Prometheus is asked.
        """
        if sources.inputs == Inputs():
            return no_data("The server was started without any source to diagnose.")
        found = diagnosis.diagnose(diagnosis.gather(sources.inputs, window=minutes * 60.0)).as_json()
        considered = [
            {"id": each["id"], "status": each["status"], "because": each["because"], "evidence": each["evidence"][:2]}
            for each in found["hypotheses"]
            if each["status"] == SUPPORTED or (each["status"] == REFUTED and each["evidence"])
        ]
        names = ", ".join(each["id"] for each in found["causes"])
        return ok(
            f"Verdict: {found['verdict']}{f' ({names})' if names else ''}. It rests on rules, not on a model.",
            {"verdict": found["verdict"], "causes": found["causes"], "considered": considered,
             "changed": found["changed"], "known": found["known"], "missing": found["missing"]},
        )  # fmt: skip

    return diagnose
