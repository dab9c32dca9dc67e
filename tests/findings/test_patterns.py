"""Patterns over time: each is told of what it is made for, and of nothing that a sound program does."""

import dataclasses
import itertools
import random
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from helpers.made_by_hand import compilation

from jaxobs.facts.compilations import EAGER, Change, Compilation
from jaxobs.facts.events import as_event
from jaxobs.facts.findings import Finding
from jaxobs.facts.process import Exit
from jaxobs.findings import patterns
from jaxobs.findings.compilations.support import sizes
from jaxobs.sources.patterns import PatternsSource
from jaxobs.state.store import Store
from tools.sentences import refuted

HERE = "train.py:33"
_numbers = itertools.count(1)


def again(
    function: str = "train.step", cause: str = "shape", changes: Iterable[Change] = (), **more: Any
) -> Compilation:
    """A compilation that is no first call, of a program that is new unless told otherwise."""
    number = next(_numbers)
    known = {"call_site": HERE, "fingerprint": f"{number:012x}", "sequence": number, "time": 1_770_000_000.0 + number}
    return compilation(function, cause=cause, reason="", changes=tuple(changes), **(known | more))


def first(function: str = "train.step", **more: Any) -> Compilation:
    """A first call."""
    return again(function, "first_call", **more)


def resized(taken: Iterable[int], path: str = "batch['image']", **more: Any) -> list[Compilation]:
    """A first call, and a compilation for each further size of dimension 0."""
    return [first(**more)] + [
        again(changes=[Change(path, "shape", f"float32[{a},128]", f"float32[{b},128]")], **more)
        for a, b in itertools.pairwise(taken)
    ]


def static(values: Iterable[str], path: str = "length", **more: Any) -> list[Compilation]:
    """A first call, and a compilation for each further value of a static argument."""
    changes = [[Change(path, "static_argument", a, b)] for a, b in itertools.pairwise(values)]
    return [first(**more), *(again(cause="static_argument", changes=each, **more) for each in changes)]


def seen(
    events: Iterable[Compilation], watching: patterns.Patterns | None = None
) -> tuple[patterns.Patterns, list[Finding]]:
    """Patterns that have seen these compilations, and the findings that came meanwhile."""
    watching = watching or patterns.Patterns()
    return watching, [finding for event in events for finding in watching.see(event)]


def found(events: Iterable[Compilation]) -> dict[str, Finding]:
    """The findings as they stand after these compilations, by type; each type once."""
    standing = seen(events)[0].standing()
    assert [why for each in standing for why in refuted(as_event(each))] == []
    by_type = {each.finding: each for each in standing}
    assert len(by_type) == len(standing), [each.id for each in standing]
    return by_type


# ----------------------------------------------------------------------------------------------------- positives


def _shape(a: int, b: int, path: str = "x") -> Change:
    return Change(path, "shape", f"float32[{a}]", f"float32[{b}]")


def _layers(count: int, library: str | None, seconds: float = 0.1) -> list[Compilation]:
    sites = {"call_site": "train.py:12", "library_site": library}
    return [
        first("multiply" if number % 2 else "add", eager=True, phases={"compile": seconds}, **sites)
        for number in range(count)
    ]


def _placed(cause: str, *changes: tuple[str, str, str], **more: Any) -> list[Compilation]:
    """A first call, and a compilation for arrays that are placed otherwise."""
    return [first(), again(cause=cause, changes=[Change(path, cause, a, b) for path, a, b in changes], **more)]


FORGOTTEN = [again(cause="cache_cleared", fingerprint=name) for name in "abab"]
BOTH_DIMENSIONS = [
    [Change("x", "shape", f"float32[{n},{3 * n}]", f"float32[{n + 1},{3 * n + 3}]"),
     Change("y", "shape", f"int32[{n}]", f"int32[{n + 1}]")]
    for n in range(20, 30)
]  # fmt: skip
STORM = [
    first(time=990.0),
    *(again(cause="structure", changes=[Change("x", "structure", "None", f"a list of {n}")], time=1000.0 + 10 * n)
      for n in range(4)),
    *(again(cause="dtype", time=1040.0 + 10 * n) for n in range(8)),
]  # fmt: skip
WEAK = Change("state['step']", "weak_type", "float32[]{weak_type=True} (a Python float)", "float32[]")
LAYER = {"call_site": "train.py:12", "library_site": "haiku/_src/basic.py:180", "eager": True}

Case = tuple[str, list[Compilation], tuple[str, ...], dict[str, Any]]
POSITIVE: dict[str, Case] = {
    "a dimension of ever new sizes": (
        "unbounded_shapes", resized([32, 17, 29, 11, 23, 30, 26, 19]),
        ("13%", "multiples of 8 (16, 24, 32)", "8 sizes from 11 to 32",
         "train.py:33 `batch['image']` float32[26,128] -> float32[19,128], 330 ms"),
        {"function": "train.step", "subject": "batch['image'] dimension 0", "count": 7, "buckets": [16, 24, 32],
         "seconds": pytest.approx(7 * 0.33), "sizes": [11, 17, 19, 23, 26, 29, 30, 32], "programs": 3,
         "padding": pytest.approx(1 - 187 / (16 + 3 * 24 + 4 * 32), abs=1e-4)},
    ),
    "leaves that share a dimension, and a second one that varies with it": (
        "unbounded_shapes", [first(), *(again(changes=each) for each in BOTH_DIMENSIONS)], (),
        {"subject": "x dimension 0", "also": ["x dimension 1"]},
    ),
    "a cache that grows by one at each step": (
        "unbounded_shapes", resized(range(100, 120)), (), {"rule": "powers of two", "buckets": [128]},
    ),
    "a cache that the function returns one longer": (
        "unbounded_shapes", resized(range(100, 120), grown=("batch['image']",)),
        ("returns it one longer", "Allocate `batch['image']` once", "`jax.lax.dynamic_update_slice`"),
        {"saves_seconds": pytest.approx(19 * 0.33)},
    ),
    "recompilations after the warm-up": (
        "recompile_storm", STORM, ("dtype 89%", "6.7 per minute", "same type"),
        {"count": 9, "since": 1030.0, "seconds": pytest.approx(9 * 0.33),
         "causes": {"dtype": 0.8889, "structure": 0.1111},
         "per_minute": pytest.approx(9 * 60 / 80.33, abs=1e-3)},
    ),
    "as many recompilations spread over a day are no storm": (
        "costly_recompilations", [first(), *(again(cause="dtype", time=2e9 + 3600 * n) for n in range(24))], (), {},
    ),
    "graphs of one line that differ by nothing in sight": (
        "costly_recompilations", [first(), *(again(cause="unknown", phases={"compile": 0.3}) for _ in range(6))],
        ("recompiled 6 times at train.py:33, which took 1.8 s (unknown)",), {"count": 6},
    ),
    "a last batch, whose size is a multiple of 8": (
        "costly_recompilations", resized([256, 96], phases={"compile": 4.0}),
        ("recompiled once at train.py:33 for 96 rows instead of 256 in `batch['image']`, which took 4 s.",
         "drop_remainder=True", "pad `batch['image']` to 256 rows"),
        {"subject": "last batch", "rows": 256, "rest": 96, "severity": "warning", "seconds": 4.0},
    ),
    "two programs in turn that JAX forgets": (
        "flip_flop", [first(fingerprint="a"), again(fingerprint="b", changes=[_shape(3, 4)]), *FORGOTTEN],
        ("clear_caches",), {"count": 4, "programs": 2},
    ),
    "one program that is forgotten in a loop": (
        "forgotten_programs",
        [first(fingerprint="a"), *(again(cause="cache_cleared", fingerprint="a") for _ in range(4))], (), {"count": 4},
    ),
    "a function made again for two shapes": (
        "recreated_functions",
        [again("f", cause, changes, fingerprint=program)
         for made in ("first_call", "new_function", "new_function", "new_function")
         for cause, changes, program in ((made, (), "a"), ("shape", [_shape(3, 4)], "b"))], (),
        {"call_site": HERE, "made": 3, "same_program": 6},
    ),
    "a lambda made again in a loop": (
        "recreated_functions",
        [again("train.<lambda>", "new_function" if n else "first_call", fingerprint="a") for n in range(6)],
        ("5 times at train.py:33", "the lambda"), {"subject": HERE, "count": 5},
    ),
    "closures over data, each of them costly": (
        "recreated_functions",
        [again("m.make.<locals>.f", "new_function" if n else "first_call", phases={"compile": 4.0}) for n in range(5)],
        (), {"made": 4, "same_program": 0},
    ),
    "closures over values that are compiled in": (
        "recreated_functions", [again("m.make.<locals>.f", "new_function" if n else "first_call") for n in range(9)],
        (), {"same_program": 0},
    ),
    "two callers with two placements, where that costs much": (
        "two_shardings_at_start",
        _placed("sharding", ("x", "P()", "P('data')"), call_site="eval.py:7", phases={"compile": 40.0}), (), {},
    ),
    **{f"arrays placed otherwise: {cause}": (
        "two_shardings_at_start",
        _placed(cause, ("state['w']", "uncommitted", "P('data')"), ("state['b']", "uncommitted", "P()")),
        ("`state['w']` was uncommitted, then P('data') and 1 more array likewise",
         "with P('data') for `state['w']` and its own for each of the others"),
        {"seconds": pytest.approx(0.33), "leaves": [
            {"path": "state['w']", "before": "uncommitted", "after": "P('data')"},
            {"path": "state['b']", "before": "uncommitted", "after": "P()"},
        ]},
    ) for cause in ("sharding", "placement", "layout")},
    "a Python scalar that became an array": (
        "weak_type_at_start", [first(), again(cause="weak_type", changes=[WEAK])],
        ("`state['step']` was a Python float before: pass jnp.asarray(value, jnp.float32) from the first call on.",),
        {"count": 1},
    ),
    "operations on ever new sizes at one line": (
        "eager_recompiles",
        [each for n in range(20, 30) for each in
         (first("dynamic_slice", eager=True), again("sin", changes=[_shape(n, n + 1)], eager=True))],
        ("`sin`",), {"function": EAGER, "subject": HERE, "operations": {"dynamic_slice": 9, "sin": 9}, "why": "sizes"},
    ),
    **{f"an operation on ever new values of `{name}`": (
        "eager_recompiles",
        [first("roll", eager=True), *(again("roll", "static_argument", eager=True,
         changes=[Change(name, "static_argument", f"({7 * n},)", f"({7 * n + 7},)")]) for n in range(40, 60))],
        words, {"why": why},
    ) for name, why, words in (
        ("shift", "values", ("for a new value of `shift` each time", "as an argument")),
        ("shape", "sizes", ("for new sizes each time",)),
    )},
    "an eager scan with a new lambda each time": (
        "eager_recompiles",
        [again("scan", cause, eager=True, fingerprint="a")
         for cause in ("first_call", "unknown", "new_function", "unknown")], ("lax.scan",), {"why": "functions"},
    ),
    "an operation that is given no function, and is lowered again": (
        "eager_recompiles",
        [again("multiply", cause, eager=True, fingerprint="a")
         for cause in ("first_call", "unknown", "unknown", "unknown")],
        ("`multiply` 3; the same programs each time.", "jitted function that is defined once"), {"why": "same"},
    ),
    # Powers and slices differ in parameters that no change names; their number tells.
    **{f"very many programs of `{name}`": (
        "eager_recompiles",
        [first(each, eager=True) for each in ("a", "b", "c", "d", "e", "f", "g", "h", *[name] * 40)], words,
        {"why": "programs"},
    ) for name, words in (("integer_pow", ("to get one program",)), ("dynamic_slice", ("pad to a few sizes",)))},
    "a static argument with ever new values": (
        "static_values", static(map(str, range(7))), ("as an array",), {"subject": "length", "count": 6, "values": 7},
    ),
    **{f"a static argument {shown.format(0)}, and so on": (
        "static_values", static(shown.format(n) for n in range(20, 32)), (), {"values": 12},
    ) for shown in ("'a{}'", "0.{}", "({}, 8)")},
    "a list that grows by an array at every call": (
        "unbounded_structures",
        [first(), *(again(cause="structure", changes=[Change(f"xs[{n}]", "structure", "absent", "float32[3]")])
                    for n in range(6))], ("xs[5]",), {"structures": 7},
    ),
    "a model of Flax NNX": (
        "eager_initialization", _layers(30, "flax/nnx/nn/linear.py:407"),
        ("30 single operations outside any jitted function compiled one by one, which took 3 s", "train.py:12 (30)",
         "(30), in flax/nnx/nn/linear.py", "nnx.jit(lambda: Model(rngs=nnx.Rngs(0)))()"), {"severity": "warning"},
    ),
    # A model of Penzai is no valid type of JAX; a library without a way to build under jit is not the user's to change.
    "a model of Penzai": (
        "eager_initialization", _layers(30, "penzai/nn/linear_and_affine.py:407"),
        ("pz.unbind_variables(build(key), freeze=True)",), {},
    ),
    "a model of Brax": (
        "eager_initialization", _layers(30, "brax/envs/fast.py:31"),
        ("operations of brax, not of your code", "jax_compilation_cache_dir"), {"severity": "info"},
    ),
    "layers that a library makes in a loop": (
        "eager_initialization eager_recompiles",
        [first("dot", **LAYER),
         *(again("dot", changes=[_shape(n, n + 1)], phases={"compile": 0.1}, **LAYER) for n in range(30))],
        ("jax.jit(transformed.init)(key, x)",), {"count": 31},
    ),
}  # fmt: skip
"""Programs: the kinds of their findings, what compiled, and what the first one says: in words, in fields and data."""


@pytest.mark.parametrize("what", POSITIVE)
def test_a_pattern_is_reported_with_what_it_needs(what: str) -> None:
    kinds, events, words, fields = POSITIVE[what]
    told = found(events)
    assert told.keys() == set(kinds.split())
    finding = told[kinds.split()[0]]
    assert {name: getattr(finding, name, finding.data.get(name)) for name in fields} == fields
    texts = "\n".join((finding.summary, finding.advice, *finding.evidence))
    assert [each for each in words if each not in texts] == []
    assert 0 < len(finding.evidence) <= 5 and len(finding.sequences) <= finding.count


def test_a_restored_checkpoint_commits_what_was_not_committed() -> None:
    """Orbax, and not the function, leaves its arrays so."""
    restored = _placed("placement", ("state.count", "uncommitted", "committed to cpu:0"))
    advice = found(restored)["two_shardings_at_start"].advice
    assert advice.endswith("commit `state.count` before the first call, too.")
    assert "where the function leaves them" not in advice


def test_candidates_of_an_autotuner_are_no_recreated_functions() -> None:
    """A library compiles each to measure it; a benchmark of the user's can create its function once."""

    def made(function: str, site: str | None = None) -> set[str]:
        events = [again(function, "new_function" if n else "first_call") for n in range(9)]
        return set(found([dataclasses.replace(each, library_site=site) for each in events]))

    assert "recreated_functions" not in made("pytest._src.autotuning.measure.<locals>.f")
    elsewhere = "not_here._src.autotuning.measure.<locals>.f"  # a log of another machine
    assert "recreated_functions" not in made(elsewhere, "not_here/_src/autotuning.py:7")
    assert "recreated_functions" in made("mine.benchmark.<locals>.f") & made("pytest.fitting.<locals>.f")


def test_static_values_that_are_not_shown() -> None:
    """With `static_values=False` only types are told; that the value differs is known all the same."""
    hidden = [again(cause="static_argument", changes=[Change("n", "static_argument", "int", "int (not equal)")])] * 12
    assert set(found([first(), *hidden])) - {"recompile_storm"} == {"static_values"}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            "Config(width=64, inner=Inner(a=1), rate={})",
            "Pass `rate` of `cfg` as an array instead of a static argument, ",
        ),
        ("Config(rate={})", "Pass `cfg` as an array instead of a static argument; "),
        ("'rate={}, width=64'", "Pass `cfg` as an array instead of a static argument; "),
        ("{}", "Pass `cfg` as an array instead of a static argument; "),
    ],
)
def test_the_field_of_a_static_configuration_that_changes_is_named(value: str, told: str) -> None:
    values = [value.format(0.5**number) for number in range(12)]
    changes = [[Change("cfg", "static_argument", a, b)] for a, b in itertools.pairwise(values)]
    events = [first(), *(again(cause="static_argument", changes=each) for each in changes)]
    assert found(events)["static_values"].advice.startswith(told)


@pytest.mark.parametrize(
    ("taken", "told"),
    [
        ([27, 28, 30, 31, 33], True),  # rows of each class in a test set
        ([128, 92, 100, 116], False),  # the last batches of training, validation and test
        ([128, 256, 384, 512, 640], False),
        ([64, 96, 128, 192, 256], False),
        ([3, 4, 5, 6], False),
    ],
)
def test_five_sizes_as_they_come_are_enough(taken: list[int], told: bool) -> None:
    """More than last batches explain; not what was rounded on purpose, nor steps that buckets have."""
    assert ("unbounded_shapes" in found(resized(taken))) == told


@pytest.mark.parametrize(
    ("pattern", "what", "before", "after", "times"),
    [
        ("two_shardings_at_start", "sharding", "P('a') on {'a': 1}", "P('i') on {'i': 1}", 1),
        ("weak_type_at_start", "weak_type", "float32[128]{weak_type=True}", "float32[128]", 1),
        ("identity_hashed_static", "static_argument", "<function f at 0x1>", "<function f at 0x2>", 3),
    ],
)
def test_what_a_library_does_within_itself_is_not_the_users_to_change(
    pattern: str, what: str, before: str, after: str, times: int
) -> None:
    """Brax's user calls `ppo.train` and places nothing; NumPyro's can keep the MCMC object."""
    changes, function = [Change("state.count", what, before, after)], "brax.training.train.<locals>.training_epoch"
    for site, inside in (("brax/training/train.py:685", True), (None, False)):
        events = [first(function), *(again(function, what, changes, library_site=site) for _ in range(times))]
        advice = found(events)[pattern].advice
        assert ("brax c" in advice) == inside
        assert ("once, before the loop" in advice) == (pattern == "identity_hashed_static" and not inside)


def _without_jit(lines: int) -> list[Compilation]:
    return [
        again("sin", changes=[_shape(n, n + 1)] if n > 20 else (), call_site=f"lm.py:{line}", eager=True)
        for n in range(20, 32) for line in range(lines)
    ]  # fmt: skip


def test_a_model_without_jit_is_one_finding() -> None:
    """Lines that each recompile for new sizes are one fault from the third on; two lines are two."""
    watching, told = seen(_without_jit(5))
    (model,) = watching.standing()
    assert model.count == 55 and model.seconds == pytest.approx(5 * sum(each.seconds for each in _lines_apart()) / 2)
    assert "55 operations outside any jitted function recompiled at 5 lines" in model.summary
    assert "lm.py:0 " in model.summary and "and 1 other line; for new sizes each time" in model.summary
    assert "one jitted function" in model.advice
    over = {each.id for each in told if each.ended is not None}
    assert {each.id for each in told} - over == {model.id}, "lines that were reported before are withdrawn"
    assert len(_lines_apart()) == 2


def test_lines_that_joined_many_stay_with_them() -> None:
    """Each compilation counts once, if the reason of its line changes later, and among very many lines."""
    watching, _ = seen(_without_jit(5))
    again_and_again = [again("sin", eager=True, fingerprint="a", call_site="lm.py:0") for _ in range(6)]
    (model,) = seen(again_and_again, watching)[0].standing()
    assert (model.count, model.data["why"]) == (61, "sizes")
    (large,) = seen(_without_jit(80))[0].standing()
    assert large.count == 80 * 11 and "recompiled at 80 lines" in large.summary, "as a large model has"


def _lines_apart() -> list[Finding]:
    return seen(_without_jit(2))[0].standing()


def test_what_is_explained_at_once_is_reported_once() -> None:
    """A recompilation of four seconds for a weak type is no finding that is withdrawn a moment later."""
    change = Change("state['score']", "weak_type", "float32[]{weak_type=True} (a Python float)", "float32[]")
    dear = again(cause="weak_type", changes=[change], phases={"compile": 4.0})
    assert [each.finding for each in seen((first(), dear))[1]] == ["weak_type_at_start"]


@pytest.mark.parametrize(
    ("before", "why", "advice"),
    [
        ("<Config object>", "another object; it compares by identity", "`config` once"),
        ("<Config object at 0x7f1e501d3950>", "", "`config` once"),
        ("Config(width=3)", "another object; it compares by identity", "`config` once"),
        ("__main__.residuals", "another object; it compares by identity", "Define the function for `config` once"),
        ("<function f at 0x7f1e501d3950>", "another object", "Define the function for `config` once, before the loop"),
        ("nan", "NaN never equals itself", "NaN never equals NaN"),
    ],
)
def test_identity_hashed_static(before: str, why: str, advice: str) -> None:
    """Objects that look alike do not compare equal, as this version tells them and as older logs do."""
    after = f"{before} ({why})" if why else before.replace("1d3950", "6026d0")
    changes = [Change("config", "static_argument", before, after)]
    told = found([first(), *(again(cause="static_argument", changes=changes, fingerprint="a") for _ in range(3))])
    assert set(told) == {"identity_hashed_static"}
    assert advice in told["identity_hashed_static"].advice
    assert "0x" not in told["identity_hashed_static"].summary


# ----------------------------------------------------------------------------------------------------- negatives


def _training_start() -> list[Compilation]:
    """First calls, gradient programs of the last batch and of evaluation, and a network initialised without jit."""
    events = []
    for operation, width in itertools.product(("multiply", "add", "broadcast_in_dim"), (24, 64, 128, 256, 512, 1000)):
        change = Change("x", "shape", f"float32[3,3,{width},16]", f"float32[{width},7]")
        events.append(again(operation, eager=True, changes=[change], call_site="model.py:9"))
    for function in ("train.step", "train.loss", "train.evaluate", "optax.update"):
        events.append(first(function))
    for transform, sizes_seen in itertools.product(("linearize", "transpose", "batch"), ((128, 96), (128, 112))):
        events.append(first("train.loss", transform=transform))
        events.append(again("train.loss", transform=transform, changes=[_shape(*sizes_seen)]))
    events.append(again("train.evaluate", changes=[_shape(128, 77)]))
    events.append(again("train.step", "static_argument", [Change("train", "static_argument", "True", "False")]))
    events.append(again("train.step", "structure", [Change("mask", "structure", "None", "float32[8]")]))
    return events


SOUND = {
    "the start of a training run": _training_start(),
    "buckets that are warmed up at the start": resized([8, 16, 32, 64, 128, 256, 512, 1024, 2048]),
    "buckets in any order, and what remains": resized([512, 64, 128, 8, 33, 16, 256, 77, 32, 1]),
    "buckets of one step": resized(range(64, 64 * 17, 64)),
    "buckets of half steps": resized([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]),
    "the last batches of three sets": resized([128, 96, 128, 112, 128, 104]),
    "two sizes in turn": resized([32, 17]),
    "a last batch after an hour": [
        first("other.step", time=1e9),
        again("other.step", changes=[_shape(256, 96)], phases={"compile": 4.0}, time=1e9 + 3600),
    ],
    "a last batch that is loaded from the cache": resized([256, 96], cache="hit", phases={"cache_load": 4.0}),
    "another network, with fewer and wider rows": [
        first(), again(changes=[Change("x", "shape", "f32[64,8]", "f32[32,16]")], phases={"compile": 4.0})
    ],
    "buckets that are warmed up from the smallest": resized([8, 16], phases={"compile": 4.0}),
    "buckets that are warmed up from the largest": resized([64, 32, 16, 8], phases={"compile": 4.0}),
    "a flag that is static": static(["True", "False"]),
    "static sizes that are buckets": static(["1", "2", "4", "8", "16", "32", "64", "128"]),
    "static shapes that are buckets": static([f"({2**n}, 8)" for n in range(9)]),
    "a handful of modes": static(["'relu'", "'gelu'", "'tanh'", "'silu'", "'swish'", "'elu'", "'selu'", "'celu'"]),
    "layers that are tried out without jit": [
        again("dot", eager=True, changes=[Change("x", "shape", f"float32[{a},{a}]", f"float32[{b},{b}]")])
        for a, b in itertools.pairwise(range(20, 34))
    ],
    "a few programs that are compiled once more after caches were cleared": [
        again(cause=cause, fingerprint=program) for cause in ("first_call", "cache_cleared") for program in "abcde"
    ],
    "a few models with a function of one code": [
        first("m.make.<locals>.step"),
        *(again("m.make.<locals>.step", "new_function", fingerprint=f"{n}") for n in range(4)),
    ],
    "two models as static arguments": static(["<Model object>", "<Model object> (another object)"]),
    "caches cleared between two experiments": [
        event
        for function in ("a", "b", "c", "d", "e", "f")
        for event in (first(function, fingerprint=function), again(function, "cache_cleared", fingerprint=function))
    ],
    "one function for several placements": [
        first("f", fingerprint="a"),
        *(
            again("f", "placement", [Change("x", "placement", "0", f"{n}")], call_site=f"a:{n}", fingerprint="a")
            for n in range(1, 8)
        ),
    ],
    "many lambdas, each of two sizes": [
        event
        for n in range(12)
        for event in (
            first("m.<lambda>", call_site=f"m.py:{n}"),
            again("m.<lambda>", changes=[_shape(32, 17)], call_site=f"m.py:{n}"),
        )
    ],
    "eager operations on a few sizes": [
        again("add", eager=True, changes=[_shape(a, b)]) for a, b in itertools.pairwise([1, 2, 3, 10, 32, 17, 100])
    ],
    "two callers with two placements": _placed("sharding", ("x", "P()", "P('data')"), call_site="eval.py:7"),
    "cells of a notebook that run again": [
        again("train.<lambda>", "new_function" if n else "first_call", fingerprint="a", by_rerun=n > 0)
        for n in range(31)
    ],
    "a few operations without jit": _layers(20, "flax/nnx/nn/linear.py:407"),
    "operations that are quick to compile": _layers(30, None, seconds=0.01),
    "a function that two threads compile": [first()] * 2,
    "evaluation that is loaded from the cache": [
        first(f"f{n}", cache="hit", phases={"trace": 0.1, "cache_load": 0.2}) for n in range(50)
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", SOUND)
def test_a_sound_program_gives_none(what: str) -> None:
    """Sound programs give no finding, however they are mixed with the rest of a start."""
    assert not found(SOUND[what])
    mixed = [*SOUND["the start of a training run"], *SOUND[what]]
    assert not found(mixed) or what == "the start of a training run"


def test_a_last_batch_is_reported_when_no_bucket_follows() -> None:
    """The second of several buckets may be taken for a last batch, until the third one comes."""
    first_two, third = resized([64, 32], phases={"compile": 4.0}), _shape(64, 16, "batch['image']")
    watching, at_once = seen(first_two)
    ended = first_two[-1].time
    assert [at_once, watching.stood(ended + 7)] == [[], []]
    assert [each.finding for each in watching.stood(ended + 8)] == ["costly_recompilations"]
    assert watching.stood(ended + 99) == [], "once"
    _, taken_back = seen([again(changes=[third], phases={"compile": 4.0})], watching)
    assert [each.ended is None for each in taken_back] == [False]
    assert taken_back[0].summary.endswith("The leading dimension has taken more sizes since: it is not a last batch.")
    assert watching.standing() == []


# ------------------------------------------------------------------------------------------------- bounded sets


class _Called:
    """Compilations, and calls between them."""

    def __init__(self) -> None:
        self.calls = 0
        self.patterns = patterns.Patterns(made=lambda function: self.calls)

    def compile(self, events: Iterable[Compilation], calls: int = 1) -> list[Finding]:
        """Each compiles in a call, after so many calls in all."""
        told = []
        for event in events:
            self.calls += calls
            told += self.patterns.see(event)
        return told

    def rest(self, calls: int) -> list[Finding]:
        """Calls in which nothing compiles, between two samples."""
        self.patterns.settled(1.0)
        self.calls += calls
        return self.patterns.settled(1_800_000_000.0)


GRID = range(16, 16 * 31, 16)


def test_sizes_that_no_longer_come_are_no_finding_any_more() -> None:
    """Thirty buckets that were warmed up: told as long as nobody can know, over when they are reused."""
    called = _Called()
    assert [each.ended for each in called.compile(resized(GRID))] == [None]
    assert called.rest(60) == []
    (over,) = called.rest(300)
    assert (over.finding, over.ended, over.count) == ("unbounded_shapes", 1_800_000_000.0, 29)
    assert "In the 360 calls since, nothing new has compiled" in over.summary
    assert [each.ended for each in called.patterns.standing()] == [over.ended]
    assert called.rest(1000) == []


def test_a_closed_set_that_grows_again_is_told_again() -> None:
    """Another bucket is no reason; as many as show a pattern are."""
    called = _Called()
    called.compile(resized(GRID))
    called.rest(400)
    grown = resized(range(480, 600, 16))[1:]
    assert called.compile(grown[:3], calls=1) == []
    (told,) = called.compile(grown[3:4], calls=1)
    assert (told.finding, told.ended, told.count) == ("unbounded_shapes", None, 33)


def test_sizes_that_keep_coming_are_told_as_early_and_never_over() -> None:
    """Whether each call has a new one, or each fifth; those of a cache that grows in steps as well."""
    for taken in (range(100, 400, 7), range(16, 16 * 60, 16)):
        without = [each.count for each in seen(resized(taken))[1] if each.finding == "unbounded_shapes"]
        for calls in (1, 5):
            called = _Called()
            told = [each.count for each in called.compile(resized(taken), calls) if each.finding == "unbounded_shapes"]
            assert told == without
            assert all(each.ended is None for each in called.patterns.standing())


def test_buckets_that_are_met_by_chance_are_over_at_once() -> None:
    """A server that compiles each bucket when it first needs it, and needs others far more often."""
    taken = [*GRID]
    random.Random(3).shuffle(taken)
    called = _Called()
    told = called.compile(resized(taken), calls=20)
    assert [(each.finding, each.ended is None) for each in told] == [("unbounded_shapes", False)]
    assert "used again and again" in told[0].summary


def test_without_calls_nothing_is_over() -> None:
    watching, _ = seen(resized(GRID))
    assert watching.settled(1.0) == watching.settled(2.0) == []


# -------------------------------------------------------------------------------------------------------- buckets


def test_suggested_buckets_hold_all_sizes_within_the_promised_padding() -> None:
    """Each size fits into a bucket, and either the padding is low or the programs are few."""
    chance = random.Random(7)
    for _ in range(300):
        seen = [chance.randint(1, 10 ** chance.randint(1, 5)) for _ in range(chance.randint(6, 60))]
        buckets = sizes.suggested(seen)
        assert max(buckets.sizes) >= max(seen)
        padded = [min(each for each in buckets.sizes if each >= size) for size in sorted(seen)]
        assert buckets.padding == pytest.approx(1 - sum(seen) / sum(padded))
        assert len(buckets.sizes) <= sizes.MOST_BUCKETS or buckets.rule == "powers of two"
        assert buckets.padding + sizes.WORTH * len(buckets.sizes) < 0.5 + sizes.WORTH * 17


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float32[32,128]", (32, 128)), ("float32[]", ()), ("key<fry>[4]", (4,)), ("(3,)", (3,)), ("()", ()),
        ("int32[5]{weak_type=True}", (5,)), ("float32[?]", None), ("<object>", None), ("('a', 1)", None), ("[", None),
    ],
)  # fmt: skip
def test_shapes_are_read_from_their_texts(text: str, expected: tuple[int, ...] | None) -> None:
    """Shapes of arrays and static tuples are understood, other texts are let alone."""
    assert sizes.shape(text) == expected


# ------------------------------------------------------------------------------------------- telling, and bounds


def test_a_finding_is_told_again_when_it_has_doubled() -> None:
    """The log stays bounded: told at 4, 8, 16, ... under one id, while it stands with its full count."""
    watching, told = seen(resized(range(400, 100, -1)))
    shapes = [each for each in told if each.finding == "unbounded_shapes"]
    assert [each.count for each in shapes] == [4, 8, 16, 32, 64, 128, 256]
    assert len({each.id for each in shapes}) == 1
    (standing,) = [each for each in watching.standing() if each.finding == "unbounded_shapes"]
    assert standing.count == 299
    assert {each.finding for each in watching.grown()} == {"recompile_storm"} or not watching.grown()


def test_an_id_is_the_same_in_every_process_and_differs_by_subject() -> None:
    """Type, function and subject make the id, and the line where a name stands for many."""
    early, late = (found(resized(taken))["unbounded_shapes"] for taken in (range(20, 30), range(50, 90)))
    assert early.id == late.id
    ids = {
        found(resized(range(20, 30), path=path, function=function, call_site=site))["unbounded_shapes"].id
        for path in ("x", "y")
        for function in ("f", "<lambda>")
        for site in ("a:1", "b:2")
    }
    assert len(ids) == 6


def test_cleared_caches_are_one_fault() -> None:
    """The first function that recompiles stands for all that is called in the loop that clears them."""

    def turn(cause: str) -> list[Compilation]:
        programs = [
            ("eval.error", {}),
            ("train.step", {"shape": 1}),
            ("train.step", {"shape": 2}),
            ("sin", {"eager": True}),
        ]
        same = [{"fingerprint": f"{name}{more}", "eager": "eager" in more} for name, more in programs]
        return [
            again(name, cause, call_site=f"{name}.py:1", **one) for (name, _), one in zip(programs, same, strict=True)
        ]

    watching, _ = seen([*turn("first_call"), *(each for _ in range(8) for each in turn("cache_cleared"))])
    (standing,) = watching.standing()
    assert (standing.finding, standing.function) == ("forgotten_programs", "eval.error")
    assert "jax.clear_caches()" in standing.advice


def test_a_function_that_was_forgotten_begins_anew() -> None:
    """Among more functions than are watched, the one that compiled longest ago is forgotten, and told as it is then."""
    others = [first(f"f{n}") for n in range(patterns.MOST_FUNCTIONS) for _ in range(2)]
    watching, _ = seen([*resized(range(60, 50, -1)), *others])
    assert watching.standing()[0].count == 9
    seen(resized(range(60, 53, -1)), watching)
    assert [each.count for each in watching.standing()] == [6]


def test_memory_is_bounded() -> None:
    """Hundreds of functions that do everything wrong keep a few megabytes and a hundred findings."""
    watching = patterns.Patterns()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(140):
            function = f"module.function_{number}"
            for turn in range(16):
                changes = [
                    *(
                        Change(f"x{leaf}", "shape", f"f[{turn},{leaf * turn}]", f"f[{turn + 1},{leaf}]")
                        for leaf in range(6)
                    ),
                    Change("n", "static_argument", str(turn), str(turn + 1)),
                ]
                watching.see(again(function, "new_function", changes, call_site=f"a.py:{turn}"))
                watching.see(again("sin", changes=changes, eager=True, call_site=f"{number}:{turn}"))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(watching._standing) == patterns.MOST_FINDINGS >= len(watching.standing()) > 0
    assert grown < 8e6


# --------------------------------------------------------------------------------------------------- the source


def test_findings_are_events_after_their_compilation_for_every_subscriber() -> None:
    """A subscriber, however late it came, sees the compilation first, then the finding that it gave."""
    store = Store()
    source = PatternsSource(store)
    source.start()
    source.start()
    seen: list[tuple[str, int]] = []
    store.subscribe(lambda event: seen.append((event.kind, event.sequence)))
    for event in resized([32, 31, 30, 29, 28]):
        store.record(event)
    assert seen == [*(("compilation", number) for number in range(1, 6)), ("finding", 6)]
    (finding,) = store.snapshot().findings
    assert (finding.finding, finding.sequence, finding.sequences) == ("unbounded_shapes", 6, (2, 3, 4, 5))
    source.stop()
    for event in resized(range(60, 20, -1), function="other"):
        store.record(event)
    assert len(store.snapshot().findings) == 1


def test_the_snapshot_shows_findings_as_they_stand() -> None:
    """The slow tick brings findings that have grown up to date, without another event."""
    store = Store()
    source = PatternsSource(store)
    source.start()
    for event in resized(range(60, 52, -1)):
        store.record(event)
    assert store.snapshot().findings[0].count == 4
    source.sample()
    (finding,) = store.snapshot().findings
    assert (finding.count, finding.sequence) == (7, 6)
    assert [event.count for event in store.events(kind="finding")[0]] == [4]  # type: ignore[attr-defined]


def test_the_snapshot_has_the_latest_finding_first_and_a_bound() -> None:
    """The store keeps a hundred findings, each once, the latest first, and counts what it gave up."""
    store = Store()

    def told(number: int) -> None:
        store.record(Finding(time=1.0, id=f"{number}", finding="flip_flop", function="f", summary="", advice=""))

    for number in [*range(120), 50]:
        told(number)
    snapshot = store.snapshot()
    assert [each.id for each in snapshot.findings[:3]] == ["50", "119", "118"]
    assert len({each.id for each in snapshot.findings}) == len(snapshot.findings) == 100
    assert snapshot.observer.dropped["findings"] == 20
    store.reset()
    assert store.snapshot().findings == ()


def test_the_source_is_silent_in_a_forked_child_and_on_other_events() -> None:
    store = Store()
    source = PatternsSource(store)
    source.start()
    events = resized([32, 31, 30, 29, 28])
    for event in events[:-1]:
        store.record(event)
    source.after_fork()
    store.record(events[-1])
    store.record(Exit(time=1.0, reason="normal"))
    assert store.snapshot().findings == ()


def test_the_innermost_line_of_a_library_is_part_of_where() -> None:
    """The user's line may be `ppo.train(...)` alone. Where it came from several lines none of them stands for all."""
    inside = {"call_site": "train.py:12", "library_site": "brax/training/agents/ppo/train.py:512"}
    finding = found([first(**inside), *[again(cause="unknown", **inside) for _ in range(20)]])["recompile_storm"]
    assert "at train.py:12 (in brax/training/agents/ppo/train.py:512) in" in finding.summary
    assert "train.py:12, in brax/training/agents/ppo/train.py:512" in finding.evidence[0]
    assert finding.where == "train.py:12, in brax/training/agents/ppo/train.py:512"
    other = inside | {"library_site": "brax/training/acting.py:9"}
    both = [again(cause="unknown", **(other if number % 2 else inside)) for number in range(20)]
    assert "at train.py:12 in" in found([first(**inside), *both])["recompile_storm"].summary
