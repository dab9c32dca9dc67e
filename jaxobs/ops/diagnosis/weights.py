"""How much a sign says: the share of public threads with it in which its fault was the cause.

`python -m benchmarks.incidents.weights --write` counts these shares on the corpus and writes `weights.json`. Threads
that were right at the first try count twice as much as others, for which a sign may have been written.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import cast

from jaxobs.ops.diagnosis.knowledge import Alert, AnySign, Event, Metric, Silence

OWN = 0.9
"""Weight of an event or a metric of jaxobs that the corpus does not have: it needs no reading."""
READ = 0.7
"""Weight of a sign in a text that the corpus does not have."""
WEAK = 0.35
"""Most that a weak sign weighs."""
SILENT = 0.75
"""Most that the end of a log weighs: the process may say more later."""
WATCHED = 0.6
"""Most that a finding weighs which is information to the process itself: its run was too short for more."""
FAULT, KIND = "", "kind"
"""Keys of the share of a fault itself, and of a general fault where the exception is of a known kind."""


def key(sign: AnySign) -> str:
    """Returns the name of a sign in the file: a digest of all that it asks for."""
    return hashlib.sha256(repr(sign).encode()).hexdigest()[:10]


@functools.cache
def weight(fault: str, sign: AnySign) -> float:
    """Returns the weight of a sign of a fault, from 0 to 1."""
    found = _table().get(fault, {}).get(key(sign), usual(sign, share(fault, FAULT)))
    return min(found, WEAK if sign.weak else SILENT if isinstance(sign, Silence) else 1.0)


def usual(sign: AnySign, share_of_fault: float) -> float:
    """Returns the weight of a sign of which nothing more is known than the share of its fault."""
    return max(OWN, share_of_fault) if isinstance(sign, Alert | Event | Metric) else share_of_fault


def share(fault: str, which: str) -> float:
    """Returns how often a fault was the cause where it was named at the first try, from 0 to 1."""
    return _table().get(fault, {}).get(which, READ)


@functools.cache
def _table() -> Mapping[str, Mapping[str, float]]:
    text = (resources.files(__package__) / "weights.json").read_text(encoding="utf-8")
    return cast("Mapping[str, Mapping[str, float]]", json.loads(text))
