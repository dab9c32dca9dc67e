"""Which line of a log of several processes is whose: by the names that collectors put before the lines."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.ops.diagnosis.gathering.log_lines import parse, without_time

_SAMPLE = 1000
"""Lines from which the column of names is found."""
_FEW = 100
_LEAST_LINES = 6
_LEAST_OF_PODS = 3
"""Lines at least, if each begins with a name that ends as Kubernetes ends those of pods, and with a container."""
_MOST = 0.97
"""Of all lines have a name in that column, if it is one."""
_NAME = re.compile(r"(?P<name>(?=\S*\d)[\[(<]?[A-Za-z][^\s{\"'=]{1,120})(?P<gap>[ \t]*\|[ \t]?|[ \t])")
_SECOND = re.compile(r"([A-Za-z][\w-]{0,60})[ \t]")
_NO_NAME = re.compile(
    r"(?:epoch|step|iter|batch|round|phase|stage|fold|trial|episode|chunk|shard|layer|seed|thread)"
    r"|\.(?:py|cc|cpp|h|go|rs|js)\b",
    re.IGNORECASE,
)
"""What a program counts itself, and places in its code."""
_SUFFIX = re.compile(r"(?:-[a-z0-9]{8,10})?-(?=[a-z0-9]*[a-z])[a-z0-9]{5}$")
"""With which Kubernetes makes the names of pods unique."""
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning): |[a-z][\w.-]{1,30}: (?:error|fatal|warning): "
)
"""As Python begins the text of an exception, and commands that of an error."""
_MOST_PROCESSES = 99_999
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|.*:.*:.*")
_MACHINE = re.compile(r"(?:host|node|ip|vm|gpu|tpu|compute|n|gke|server)?[-_.]?\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """Names at the beginning of each line, behind the time if there is one."""

    shape: str
    second: str | None
    """What follows each name: the container, as `stern` writes it."""

    def split(self, text: str) -> tuple[str, str] | None:
        """The name, and the line without it; None if the line has none."""
        start = without_time(text)
        found = _NAME.match(text, start)
        if found is None or _shape(found.group("name")) != self.shape:
            return None
        place = found.end()
        if self.second is not None and (second := _SECOND.match(text, place)) and second.group(1) == self.second:
            place = second.end()
        return _bare(found.group("name")), text[:start] + text[place:]


def column(texts: Sequence[str], year: int) -> Column | None:
    """Where a log of several processes has their names; None if it has none, or in a form that `parse` knows."""
    step = max(1, len(texts) // _SAMPLE)
    sample = [each for each in texts[::step] if each.strip()]
    lines = [parse(each, year) for each in sample[:: max(1, len(sample) // _FEW)]]
    if 2 * sum(bool(each.process or each.name) for each in lines) > len(lines):
        return None
    found = [_NAME.match(each, without_time(each)) for each in sample]
    named = [each for each in found if each is not None]
    of_pods = bool(named) and _SUFFIX.search(named[0].group("name")) is not None
    if not named or len(named) < max(1 if of_pods else _LEAST_LINES, _MOST * len(sample)):
        return None
    ((shape, count),) = Counter(_shape(each.group("name")) for each in named).most_common(1)
    names = Counter(each.group("name") for each in named if _shape(each.group("name")) == shape)
    second = _second(named, year)
    differ = 2 * len(names) > count and not (of_pods and second is not None)
    if count < _MOST * len(sample) or differ or _NO_NAME.search(shape):
        return None
    # One name before all lines is that of the only pod, where its container follows.
    return Column(shape, second) if len(names) > 1 or second is not None else None


def _second(named: Iterable[re.Match[str]], year: int) -> str | None:
    """Returns the word behind each name, if the word is the same everywhere and begins no text.

    The names of pods show that, or a text behind the word that is of a traceback or begins as loggers begin theirs.
    """
    behind = [(each, _SECOND.match(each.string, each.end())) for each in named]
    words = Counter(found.group(1) for _, found in behind if found is not None)
    if len(words) != 1 or any(found is None for _, found in behind):
        return None
    rests = [each.string[found.end() :] for each, found in behind if found is not None]
    of_tracebacks = (" ", "\t", "\u256d", "\u2502", "Traceback (most recent")
    logged = (parse(each, year) for each in rests[:_FEW])
    shows = any(each.startswith(of_tracebacks) or _EXCEPTION.match(each) for each in rests) or any(
        each.time is not None or each.level or each.process for each in logged
    )
    word = next(iter(words))
    pods = len(behind) >= _LEAST_OF_PODS and all(is_of_a_pod(each.group("name")) for each, _ in behind)
    return word if shows or (pods and not _NO_NAME.search(word)) else None


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", _SUFFIX.sub("-~", name))


def is_of_a_pod(name: str) -> bool:
    """Whether a name ends as Kubernetes ends those of pods."""
    return re.search(r"\d", _SUFFIX.sub("", name)) is not None and _SUFFIX.search(name) is not None


def _bare(name: str) -> str:
    return name.strip("[](){}<>:,|")


def processes(names: Iterable[str]) -> Mapping[str, str]:
    """What to call the processes: by the one number in which their names differ, else by their names.

    Names that differ in several numbers, such as those of the pods of several slices, stay as they are.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted({*names} - {""}):
        groups.setdefault(_shape(name), []).append(name)
    found: dict[str, str] = {}
    for group in sorted(groups.values(), key=len, reverse=True):
        numbers = _numbers(group)
        called = {name: f"process {number}" for name, number in zip(group, numbers or (), strict=False)}
        if not {*called.values()} & {*found.values()}:
            found |= called
    return found


def _numbers(names: Sequence[str]) -> Sequence[int] | None:
    """Of processes whose names differ in numbers only; None if these are not the processes'."""
    if any(_ADDRESS.fullmatch(each) for each in names):
        return None
    fields = list(
        zip(*([int(one) for one in re.findall(r"\d{1,9}", _SUFFIX.sub("", each))] for each in names), strict=True)
    )
    varying = [values for values in fields if len(set(values)) > 1]
    if not fields or len(varying) > 1 or (not varying and len(names) > 1):
        return None
    values = varying[0] if varying else fields[-1]
    # The numbers of machines are none of processes, unless they begin at 0 and have no gaps.
    is_machine = _MACHINE.fullmatch(names[0]) is not None
    return None if max(values) > _MOST_PROCESSES or (is_machine and sorted(values) != [*range(len(values))]) else values
