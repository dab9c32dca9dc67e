"""Functions for values that are wrong."""

import re
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis.evidence import LAST, LINE, METRIC, PROGRESS, RAISED, START, Evidence, Observation, is_before
from jaxobs.ops.diagnosis.knowledge import Functions


def _comes_first(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Data that turned non-finite after results did is none of the cause."""
    others = [each for each in evidence.of_kind("event") if each.name.startswith("nonfinite:") and each not in signs]
    return [each for each in signs if not any(is_before(other, each) is True for other in others)]


_SHARE = 0.0006
"""Share of the steps: loss scaling in 16 bits overflows in one of 2,000, as it must. As in JaxNonFiniteValues."""
_SHARE_OF_GRADIENTS = 0.01
"""Share for gradients, whose scale is raised more often, as in the finding of the process."""
_GRADIENTS = re.compile("grad|scale|overflow", re.IGNORECASE)
_BEST = re.compile(r"(?:^|[^a-z])(?:best|lowest|smallest|minimum)(?:[^a-z]|$)", re.IGNORECASE)
_BEST_SO_FAR = re.compile(
    r"(?i:\b(?:best|lowest|smallest|minimum)[\w /.-]{0,30}?loss[\"']?\s*(?:was|is|[:=])?\s*(?:inf|infinity)\b)"
)
_NONFINITE = re.compile(r"(?i:\b(?:nan|inf|infinity)\b)")
_QUANTITY = (
    r"\b(?:[Ee]nergy|(?:n|neg_?)?elbo|ELBO|nll|NLL|[Ll]og[ _-]?(?:prob|likelihood|density)\w*|[Pp]otential|"
    r"[Rr]esidual|E_(?:pot|kin|tot))\b[\"']?\s*[:=]\s*[-+]?"
)
"""What simulations and samplers log in place of a loss."""
_FINITE_LOSS = re.compile(rf"(?i:loss\b[\"']?\s*[:=]?\s*[-+]?)\.?\d|{_QUANTITY}\.?\d")
_EVALUATED = re.compile(r"\b(?:eval\w*|val\w*|test|dev)[ _/-]?(?:loss|nll|elbo)\b", re.IGNORECASE)
_SKIPPED = re.compile(
    r"\bskip\w*\b.{0,40}\b(?:update|step|batch)\b|\b(?:update|step|batch) skipped|\bloss[ _]scal\w+|\bpruned\b",
    re.IGNORECASE,
)
"""What dynamic loss scaling says of a step that overflows: the scale is lowered, and no parameter changes. And what a
search over parameters says of a trial that it gives up."""
_FEW, _ONE_OF = 3, 10
"""Losses in a log that recover are no fault if they are so few, or one of so many."""


def _is_ordinary(evidence: Evidence, sign: Observation) -> bool:
    """Whether the process has so few of them that they come from loss scaling, or it is a best value so far."""
    if sign.data.get("recovered") == "yes" or _is_a_best_value(sign):
        return True
    if sign.kind == LINE or not (sign.process or sign.kind == METRIC):
        return False
    own = [
        each
        for each in evidence.of_kind(METRIC)
        if each.process == sign.process and (sign.process or each.source == sign.source) and each.value is not None
    ]
    steps = sum(each.value or 0.0 for each in own if each.name == "jax_steps_total")
    values = [each for each in own if each.name == "jax_nonfinite_total" and _is_about(each, sign)]
    return bool(values) and all((each.value or 0.0) < _share(each) * steps for each in values)


def _is_a_best_value(sign: Observation) -> bool:
    """Whether it is one that begins at infinity, by its name."""
    if sign.kind == LINE:
        return _BEST_SO_FAR.search(sign.text) is not None and not _NONFINITE.search(_BEST_SO_FAR.sub("", sign.text))
    return _BEST.search(_name(sign)) is not None and " is nan" not in sign.text


def _name(sign: Observation) -> str:
    return sign.data.get("name") or sign.name.partition("nonfinite:")[2]


def _is_about(counted: Observation, sign: Observation) -> bool:
    """Whether a counter is about the value of a sign, if that tells which one it is about."""
    name = _name(sign)
    return not name or counted.data.get("name", name) == name


def _share(counted: Observation) -> float:
    return _SHARE_OF_GRADIENTS if _GRADIENTS.search(counted.data.get("name", "")) else _SHARE


def _lasting(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Without the lines of a log after which the same run logs finite losses again, as with loss scaling."""
    lines = [each for each in signs if each.kind == LINE and _is_followed_by_finite_ones(evidence, each)]
    steps = {(each.source, each.process): float(each.data.get("steps", 0)) for each in evidence.of_kind(LAST)}
    left = []
    for each in signs:
        own = [one for one in lines if (one.source, one.process) == (each.source, each.process)]
        # Beside a finite loss it is that of a validation which was not made yet.
        beside = all(_FINITE_LOSS.search(one.text) or _SKIPPED.search(one.text) for one in own)
        few = beside or len(own) <= _FEW or _ONE_OF * len(own) < steps.get((each.source, each.process), 0.0)
        if each not in own or not few:
            left.append(each)
    return left


def _is_followed_by_finite_ones(evidence: Evidence, sign: Observation) -> bool:
    behind = [
        each
        for each in evidence.of_kind(PROGRESS, START)
        if (each.source, each.process) == (sign.source, sign.process) and each.place > sign.place
    ]
    begun = min((each.place for each in behind if each.kind == START), default=float("inf"))
    before = (each for each in behind if each.place < begun)
    return any(_FINITE_LOSS.search(each.text) and _is_of_another(sign.text, each.text) is False for each in before)


def _is_of_another(text: str, other: str) -> bool:
    """Whether one is a loss of an evaluation and the other is not: a finite one does not make the other finite."""
    return (_EVALUATED.search(text) is None) != (_EVALUATED.search(other) is None)


_NO_NUMBER = re.compile(r"\b(?:nan|inf)\b", re.IGNORECASE)


def _with_a_result(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A candidate that fails is normally left out; it is the suspect if a result is no number, or if none is left."""
    wrong = any(_NO_NUMBER.search(each.text) or each.name.startswith("nonfinite:") for each in evidence.observations)
    return [
        each
        for each in signs
        if wrong or each.name == RAISED or not re.search("do not match the reference|All algorithms", each.text)
    ]


_COUNT = (
    r"(?i)\b(?:\w*(?:tokens?|samples?|examples?|images?|frames?|steps?|bytes|seen|count(?:er)?|total)\w*)[\"']?"
    r"[=: ]{1,3}-(?!214748364[78])2[01]\d{8}\b"
)
"""A count just above the least number of 32 bits, which itself stands for "none" in many programs."""

FUNCTIONS: Mapping[str, Functions] = {
    "nonfinite_input": {"narrow": _comes_first},
    "nonfinite_values": {"ordinary": _is_ordinary, "narrow": _lasting},
    "wrong_kernel": {"narrow": _with_a_result},
}
PARTS: Mapping[str, str] = {"count": _COUNT, "quantity": _QUANTITY}
