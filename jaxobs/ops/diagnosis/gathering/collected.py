"""What log collectors hand out, as the lines that they collected: one entry a line, the oldest first."""

import csv
import itertools
import json
import re
from collections.abc import Iterator, Sequence

from jaxobs.base import json_lines
from jaxobs.ops.diagnosis.gathering.log_lines import parse
from jaxobs.ops.diagnosis.gathering.records import MESSAGES

Numbered = tuple[int, str]
"""The number of a line, and its text."""

_SAMPLE = 400
"""Lines by which the order of a log is judged."""
_LEAST_TIMES = 3
_KEY = re.compile(r"(\s*)([A-Za-z_@][\w./@-]*): ?(.*)$")
_NAMES_OF_PODS = {"pod_name", "pod", "instance_id", "node_name"}


def entries(lines: list[Numbered], year: int) -> list[Numbered]:
    """The same lines, or those that an array of JSON, documents of YAML or a table hold.

    If they are newest first, they are turned round and numbered from the end.
    """
    found = _of_array(lines) or _of_documents(lines) or _of_table(lines) or lines
    texts = [text for _, text in found]
    return list(enumerate(reversed(texts), 1)) if _newest_first(texts, year) else found


def _of_array(lines: Sequence[Numbered]) -> list[Numbered]:
    """Each entry of `[{...}, {...}]` as one line of JSON, such as `gcloud logging read --format=json` writes.

    Or of `{"events": [...]}`, such as `aws logs get-log-events`.
    """
    first = next((text.strip() for _, text in lines if text.strip()), "")
    if not re.match(r"[\[{]\s*$|\[\s*\{|\{\s*\"(?:events|entries|hits|records|results|data)\": ?\[", first):
        return []
    try:
        body = json_lines.loads("\n".join(text for _, text in lines))
    except ValueError:
        return []
    if isinstance(body, dict):
        body = next((each for each in body.values() if isinstance(each, list)), [])
    if not isinstance(body, list) or not body or not all(isinstance(each, dict) for each in body):
        return []
    return [(number, json.dumps(each)) for number, each in enumerate(body, 1)]


def _of_table(lines: Sequence[Numbered]) -> list[Numbered]:
    """Each row of CSV as one line of JSON, if the first row names a column of messages."""
    names = next(csv.reader([lines[0][1]]), []) if lines else []
    if len(names) < 2 or not {each.strip().lower() for each in names} & {each.lower() for each in MESSAGES}:
        return []
    try:
        rows = list(csv.reader(f"{text}\n" for _, text in lines[1:]))
    except csv.Error:
        return []
    if not rows or sum(len(each) == len(names) for each in rows) < 0.9 * len(rows):
        return []
    names = [each.strip() for each in names]
    return [(number, json.dumps(dict(zip(names, row, strict=False)))) for number, row in enumerate(rows, 2)]


def _of_documents(lines: Sequence[Numbered]) -> list[Numbered]:
    """Each document of YAML as one line of JSON: `gcloud logging read` writes them if it is not told otherwise."""
    if next((text for _, text in lines if text.strip()), "").strip() != "---":
        return []
    found = [_of_document(each) for each in _documents(lines)]
    kept = [each for each in found if each is not None]
    return kept if len(kept) > 0.9 * len(found) else []


def _documents(lines: Sequence[Numbered]) -> Iterator[list[Numbered]]:
    for is_end, each in itertools.groupby(lines, lambda line: line[1].rstrip() == "---"):
        if not is_end:
            yield list(each)


def _of_document(lines: Sequence[Numbered]) -> Numbered | None:
    """Its text, time, severity and pod. A parser of YAML is not at hand at run time, and this much needs none."""
    fields: dict[str, str] = {}
    block: str | None = None
    for _, text in lines:
        key = _KEY.match(text)
        if block is not None and (text.startswith("  ") or not text.strip()):
            fields[block] += text[2:] + "\n"
            continue
        block = None
        if key is None:
            continue
        indent, name, value = key.groups()
        if not indent and value.rstrip() in ("|", "|-", "|+", ">", ">-"):
            block, fields[name] = name, ""
        elif not indent or name in _NAMES_OF_PODS:
            fields.setdefault(name, _unquoted(value.strip()))
    if not {"textPayload", "message"} & fields.keys():
        return None
    return lines[0][0], json.dumps({name: text.rstrip("\n") for name, text in fields.items()})


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return value


def _newest_first(texts: Sequence[str], year: int) -> bool:
    """By the times of some of the lines: never later ones behind earlier ones, and not all the same."""
    step = max(1, len(texts) // _SAMPLE)
    lines = [line for text in texts[::step] if (line := parse(text, year)).time is not None]
    # A year that was not read says nothing beside one that was.
    times = [line.time or 0.0 for line in lines if not line.yearless] or [line.time or 0.0 for line in lines]
    return len(set(times)) >= _LEAST_TIMES and all(one >= other for one, other in itertools.pairwise(times))
