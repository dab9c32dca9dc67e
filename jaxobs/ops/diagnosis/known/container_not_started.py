"""The container of the job did not start."""

from __future__ import annotations

from jaxobs.ops.diagnosis.evidence import PROGRESS, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line


def _was_tried_again(evidence: Evidence, sign: Observation) -> bool:
    """Whether the program makes steps behind it: volumes and registries often answer the next time."""
    return any(
        (each.source, each.process) == (sign.source, sign.process) and each.place > sign.place
        for each in evidence.of_kind(PROGRESS)
    )  # fmt: skip


KNOWN = Knowledge(
    title="The container could not be started: its image, its configuration or its volumes",
    impact=ENDED,
    signs=(
        Line(
            r"FailedAttachVolume|AttachVolume\.\w+ failed|FailedCreatePodSandBox|Failed to create pod sandbox|"
            r"ErrImageNeverPull|"
            r"InspectFailed|Failed to inspect image|Error: (?:secret|configmap|couldn't find key) \S+ |"
            r"While making image from|error fetching image|ImageNotFound|image not known|No such image|"
            r"error parsing reference|failed to resolve reference",
            info=True,
            passes=False,
        ),
        Line(
            r"ImagePullBackOff|ErrImagePull|InvalidImageName|Failed to pull image|manifest (?:unknown|"
            r"for \S+ not found)|"
            r"pull access denied",
            info=True,
            passes=False,
        ),
        Line(
            r"pyxis: (?:container start failed|failed to|couldn't|unable to)|spank_pyxis\S* .{0,60}failed|"
            r"enroot-\w+\b.{0,120}(?:[Ff]ailed|ERROR)|FATAL: .{0,80}(?:container|image|SIF)\b"
        ),
        Line(
            r"Create(?:Container|PodSandbox)(?:Config)?Error|RunContainerError|FailedMount|MountVolume\.\w+ failed|"
            r"OCI runtime (?:create|exec) failed|exec format error|executable file not found in \$PATH",
            unless="nvidia-container-cli(?:\\.real)?|could not select device driver",
            info=True,
            passes=False,
        ),
    ),
    refuted_by=(Line(r"Started container|Successfully pulled image", info=True),),
    follows=("disk_full", "storage_denied"),
    ordinary=_was_tried_again,
    fix=(
        "Read the event that is named (`kubectl describe pod`): the name and tag of the image and the right to pull "
        "it, the secrets and config maps, the volumes, the command."
    ),
)
