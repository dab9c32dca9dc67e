"""Reads a reason, an advice or a finding together with its facts, and says where the facts refute it.

Every log that a test reads through `run_programs.events` and every program of the zoo goes through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jaxobs.internals import source_files

_TYPED = re.compile(r"^(?P<dtype>[\w<>]+)\[(?P<sizes>[^\]]*)\]")
_CHANGED = frozenset({"first_call", "new_function", "cache_cleared", "unknown"})
"""Causes that need no change of their name."""


def refuted(event: Mapping[str, Any]) -> list[str]:
    """Returns what the facts of an event, as in the event log, refute in its sentences; empty if nothing."""
    if event["event"] == "compilation":
        return list(_compilation(event))
    if event["event"] == "finding":
        return list(_finding(event))
    return []


def _compilation(event: Mapping[str, Any]) -> Iterator[str]:
    reason, changes, cause = str(event["reason"]), event["changes"], event["cause"]
    for change in changes:
        if change["before"] == change["after"]:
            yield f"`{change['path']}` did not change: {change['before']} -> {change['after']}"
    kinds = {each["what"] for each in changes}
    if changes and cause not in _CHANGED and cause not in kinds:
        yield f"the cause {cause} is none of the changes {sorted(kinds)}"
    if cause == "first_call" and changes:
        yield "a first call has nothing to differ from"
    yield from _advice(reason)
    function, site = event["function"].partition(".")[0], str(event.get("library_site") or "").partition("/")[0]
    if (
        function == site
        and re.search(r"out_shardings|jnp\.asarray|Commit `|[Pp]lace `", reason)
        and site not in reason.rpartition(". ")[2]
    ):
        yield f"the user cannot change {site}"
    if "last batch" in reason:
        yield from _last_batch(event)
    for found in re.finditer(r"(\d+) fits both", reason):
        bucket = int(found[1])
        sizes = [_sizes(text) for each in changes[:1] for text in (each["before"], each["after"])]
        varied = [pair for pair in zip(*sizes, strict=False) if pair[0] != pair[1]]
        if len(varied) != 1 or max(varied[0]) > bucket:
            yield f"{bucket} does not hold {varied}"
    for found in re.finditer(r"(?:is|was) a Python (\w+)", reason):
        texts = [text for each in changes if each["what"] == cause for text in (each["before"], each["after"])]
        if found[1] != "number" and not any(f"(a Python {found[1]})" in text for text in texts):
            yield f"nothing here is a Python {found[1]}: {texts[:4]}"
        if not any(text.partition("[")[2].startswith("]") for text in texts):
            yield f"an array with dimensions is no scalar: {texts[:4]}"


def _last_batch(event: Mapping[str, Any]) -> Iterator[str]:
    if event["eager"]:
        yield "an operation outside any function has no last batch"
    first = next(each for each in event["changes"] if each["what"] == "shape")
    before, after = _sizes(first["before"]), _sizes(first["after"])
    if len(before) != len(after) or before[1:] != after[1:] or not after or after[0] >= before[0]:
        yield f"no last batch: {first['before']} -> {first['after']}"


def _finding(event: Mapping[str, Any]) -> Iterator[str]:
    yield from _advice(event["advice"])
    for found in re.finditer(
        r"\b(None|nan|inf) (s|ms|times|bytes|programs?)\b", f"{event['summary']} {event['advice']}"
    ):
        yield f"no figure: {found[0]}"
    if "recompiled" in event["summary"] and all("first_call" in each for each in event["evidence"]):
        yield "what it cites compiled for the first time"


def _advice(text: str) -> Iterator[str]:
    if "``" in text:
        yield "a name is empty"
    for found in re.finditer(r"(\d[\d,]*) to (\d[\d,]*)\)", text):
        if found[1] == found[2]:
            yield f"from {found[1]} to itself"
    yield from _code(text)
    for found in re.finditer(r"Define the function `([^`]+)` once, at module level", text):
        library = source_files.owner(found[1])
        if library is not None:
            yield f"the user cannot change {library}"


def _code(text: str) -> Iterator[str]:
    import jax.numpy as jnp

    for found in re.finditer(r"jnp\.asarray\(\w+, (jnp\.)?([\w<>]+)\)", text):
        name = found[2]
        known = name == "dtype" or (found[1] and isinstance(getattr(jnp, name, None), type(jnp.float32) | type))
        if not known:
            yield f"`{name}` is no dtype"
    for found in re.finditer(r"\bjnp\.(\w+)", text):
        if not hasattr(jnp, found[1]):
            yield f"jax.numpy has no `{found[1]}`"


def _sizes(text: str) -> list[int]:
    found = _TYPED.match(text)
    sizes = found["sizes"].split(",") if found and found["sizes"] else []
    return [int(each) for each in sizes if each.strip().isdigit()]
