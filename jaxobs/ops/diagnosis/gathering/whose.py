"""Whose a log is, and whose its lines are that do not say it; and when those were written that have no time."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from jaxobs.ops.diagnosis.evidence import END, LAST, LINE, PROGRESS, START, Observation, Source
from jaxobs.ops.diagnosis.gathering.instances import is_of_a_pod
from jaxobs.ops.diagnosis.gathering.log_times import nearest

_INDEX = re.compile(
    r"(?:^|[^a-z0-9])(?:rank|process|proc|worker|host|task|node|pod|slice|p|w|r)[-_.]?(\d{1,5})(?=\D|$)|"
    r"[-_.](\d{1,5})\.(?:log|txt|out|err)(?:\.(?:gz|bz2|xz))?$",
    re.IGNORECASE,
)
_OF_A_JOB = re.compile(r"(?:slurm|job(?:id)?)[-_.]?\d+", re.IGNORECASE)
"""The number of a job in a file's name."""
_FOLDER = re.compile(r"(?:(?:rank|process|proc|worker|host|task|node|pod)[-_.]?)?(\d{1,5})", re.IGNORECASE)
_HOST = re.compile(
    r"[Nn]ode [Ff]ailure on (?P<slurm>[\w.-]+)|\bNode IP: (?P<ray>[\d.]+\d)|"
    r"^ray::\S+ \(pid=\d+, ip=(?P<task>[\d.]+\d)|, ip=(?P<actor>[\d.]+\d)[,)].{0,200}\b(?:died|dead|unavailable)\b"
)
_CANCELLED = re.compile(r"slurmstepd: error: \*\*\* (?:JOB|STEP) (\d+)(?:\.\d+)? ON \S+ CANCELLED AT ")
_LAUNCHER = re.compile(
    r"(?:srun|salloc|slurmstepd|sbatch|mpirun|mpiexec|prterun|prun|torchrun|submitit|kernel)\b|Killed$|.{0,40}oom-kill|"
    r"Out of memory:|Memory cgroup out of memory",
    re.IGNORECASE,
)
"""What is said of processes, and by none of them."""
OF_LOGS = {LINE, PROGRESS, START, END, LAST}
"""Kinds of observations that logs give."""


def process_of(path: str) -> str:
    """Whose log it is by the name of the file, `worker-3.log`, or of its folder, `3/stderr.log`, or the pod's name.

    Empty where these say nothing.
    """
    folder, name = os.path.split(path)
    found = list(_INDEX.finditer(_OF_A_JOB.sub("", name)))
    index = next((each for match in found for each in match.groups() if each is not None), None)
    if index is None and (of_folder := _FOLDER.fullmatch(os.path.basename(folder))):
        index = of_folder.group(1)
    stem = name.split(".")[0]
    return f"process {int(index)}" if index is not None else stem if is_of_a_pod(stem) else ""


def host_of(text: str) -> str:
    """The host that a line says has failed, or on which what it tells of happened; empty if it says none."""
    found = _HOST.search(text)
    return "" if found is None else next(each for each in found.groups() if each is not None)


def cancelled_job(text: str) -> str:
    """The job of Slurm that a line says is cancelled; empty if it says that of none."""
    found = _CANCELLED.match(text)
    return "" if found is None else found.group(1)


def settled(
    found: Iterable[Observation], process: str, firsts: Mapping[str, float], dated: float | None
) -> list[Observation]:
    """What a log shows, once all of it is read.

    Args:
      process: whose log it is by its name.
      firsts: by process: the first time that it gives.
      dated: the first time that has a year.
    """
    kept = [_settled(each, firsts, dated) for each in found]
    named = {each.process for each in kept} - {""}
    if len(named) != 1:
        return kept
    if process:  # The name of a host says less than that of the file.
        return [replace(each, process=process) for each in kept]
    # A program that names itself in what it logs does not do so in a traceback.
    (only,) = named
    times = [each for each in kept if each.process == only and each.time is not None]
    return [
        each if each.process or each.kind != LINE or _LAUNCHER.match(each.text) else _given(each, only, times)
        for each in kept
    ]


def _given(one: Observation, process: str, timed: Iterable[Observation]) -> Observation:
    """The same line as one of that process: without a time of its own, it has the latest before it."""
    before = max((each for each in timed if each.place <= one.place), key=lambda each: each.place, default=None)
    if one.time is not None or before is None:
        return replace(one, process=process)
    return replace(one, process=process, time=before.time, data={**one.data, "at_least": "yes"})


def _settled(one: Observation, firsts: Mapping[str, float], dated: float | None) -> Observation:
    if one.time is None:
        first = firsts.get(one.process)
        return one if first is None else replace(one, data={**one.data, "at_most": repr(first)})
    if dated is None or "yearless" not in one.data:
        return one
    data = {name: value for name, value in one.data.items() if name != "yearless"}
    return replace(one, time=nearest(one.time, dated), data=data)


def adopted(found: Sequence[Observation], sources: Iterable[Source]) -> list[Observation]:
    """The only log, if it says nowhere whose it is, as that of the only process that other sources know."""
    logs = {each.name for each in sources if each.kind == "log"}
    others = [each for each in found if each.source not in logs]
    known = {each.process for each in others}
    counts = {count for each in others if (count := each.data.get("count") or each.data.get("process_count"))}
    unknown = all(not each.process for each in found if each.source in logs)
    if len(logs) != 1 or len(known) != 1 or counts != {"1"} or not unknown:
        return list(found)
    (process,) = known
    return [replace(each, process=process) if each.source in logs else each for each in found]
