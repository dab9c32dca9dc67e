"""Patterns over time: each is told of what it is made for, and of nothing that a sound program does."""

from __future__ import annotations

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


def found(events: Iterable[Compilation]) -> dict[str, Finding]:
    """The findings as they stand after these compilations, by type; each type once."""
    watching = patterns.Patterns()
    for event in events:
        watching.see(event)
    standing = watching.standing()
    assert [why for each in standing for why in refuted(as_event(each))] == []
    by_type = {each.finding: each for each in standing}
    assert len(by_type) == len(standing), [each.id for each in standing]
    return by_type


# ----------------------------------------------------------------------------------------------------- positives


def test_unbounded_shapes_names_argument_dimension_and_buckets() -> None:
    """A dimension of ever new sizes is told with the sizes, the buckets for them, and what they would cost."""
    finding = found(resized([32, 17, 29, 11, 23, 30, 26, 19]))["unbounded_shapes"]
    assert finding.function == "train.step"
    assert finding.subject == "batch['image'] dimension 0"
    assert finding.count == 7
    assert finding.seconds == pytest.approx(7 * 0.33)
    assert finding.data["sizes"] == [11, 17, 19, 23, 26, 29, 30, 32]
    assert finding.data["buckets"] == [16, 24, 32]
    assert finding.data["padding"] == pytest.approx(1 - 187 / (16 + 3 * 24 + 4 * 32), abs=1e-4)
    assert finding.data["programs"] == 3
    assert "13%" in finding.advice and "multiples of 8 (16, 24, 32)" in finding.advice
    assert "8 sizes from 11 to 32" in finding.summary
    assert len(finding.evidence) == 5
    assert "train.py:33 `batch['image']` float32[26,128] -> float32[19,128], 330 ms" in finding.evidence[0]
    assert len(finding.sequences) == 7


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


def test_unbounded_shapes_of_one_batch_are_one_finding() -> None:
    """Leaves that share the dimension, and a second dimension that varies with it, make one finding."""

    def changes(a: int, b: int) -> list[Change]:
        return [
            Change("x", "shape", f"float32[{a},{3 * a}]", f"float32[{b},{3 * b}]"),
            Change("y", "shape", f"int32[{a}]", f"int32[{b}]"),
        ]

    events = [first(), *(again(changes=changes(n, n + 1)) for n in range(20, 30))]
    standing = [each for each in _standing(events) if each.finding == "unbounded_shapes"]
    assert [each.subject for each in standing] == ["x dimension 0"]
    assert standing[0].data["also"] == ["x dimension 1"]


def test_unbounded_shapes_that_grow_get_powers_of_two() -> None:
    """A cache that grows by one at each step would leave any other set of buckets behind."""
    finding = found(resized(range(100, 120)))["unbounded_shapes"]
    assert finding.data["rule"] == "powers of two"
    assert finding.data["buckets"] == [128]


def test_recompile_storm_says_rate_seconds_and_causes() -> None:
    """Recompilations after the warm-up are a storm, with the rate, the time lost and the causes by share."""
    structures = [
        again(cause="structure", changes=[Change("x", "structure", "None", f"a list of {n}")], time=1000.0 + 10 * n)
        for n in range(4)
    ]
    types = [again(cause="dtype", time=1040.0 + 10 * n) for n in range(8)]
    finding = found([first(time=990.0), *structures, *types])["recompile_storm"]
    assert finding.count == 9
    assert finding.since == 1030.0
    assert finding.seconds == pytest.approx(9 * 0.33)
    assert finding.data["per_minute"] == pytest.approx(9 * 60 / 80.33, abs=1e-3)
    assert finding.data["causes"] == {"dtype": 0.8889, "structure": 0.1111}
    assert "dtype 89%" in finding.summary
    assert "6.7 per minute" in finding.summary
    assert "same type" in finding.advice


def test_recompile_storm_has_to_be_dense() -> None:
    """As many recompilations spread over a day are none."""
    assert set(found([first(), *(again(cause="dtype", time=2e9 + 3600 * n) for n in range(24))])) == {
        "costly_recompilations"
    }


def test_flip_flop_when_caches_are_cleared() -> None:
    """Two programs in turn, each compiled again and again, are told with what makes JAX forget them."""
    ab = itertools.cycle("ab")
    events = [first(fingerprint=next(ab)), again(fingerprint=next(ab), changes=[_shape(3, 4)])]
    events += [again(cause="cache_cleared", fingerprint=next(ab)) for _ in range(4)]
    told = found(events)
    assert set(told) == {"flip_flop"}
    assert told["flip_flop"].count == 4
    assert told["flip_flop"].data["programs"] == 2
    assert "clear_caches" in told["flip_flop"].advice


def test_a_function_made_again_for_two_shapes_is_one_finding() -> None:
    """Both programs are compiled again and again, and why is known: that is what is reported."""
    events = []
    for turn in range(4):
        events.append(again("f", "new_function" if turn else "first_call", fingerprint="a"))
        events.append(again("f", changes=[_shape(3, 4)], fingerprint="b"))
    told = found(events)
    assert set(told) == {"recreated_functions"}
    assert told["recreated_functions"].data == {"call_site": HERE, "made": 3, "same_program": 6}


def test_forgotten_programs_of_one_program() -> None:
    """Caches are cleared in a loop."""
    told = found([first(fingerprint="a"), *(again(cause="cache_cleared", fingerprint="a") for _ in range(4))])
    assert set(told) == {"forgotten_programs"}
    assert told["forgotten_programs"].count == 4


@pytest.mark.parametrize("cause", ["sharding", "placement", "layout"])
def test_two_shardings_at_start(cause: str) -> None:
    """The second program of a function for arrays placed otherwise is told, with leaves, placements and cost."""
    changes = [
        Change("state['w']", cause, "uncommitted", "P('data')"),
        Change("state['b']", cause, "uncommitted", "P()"),
    ]
    finding = found([first(), again(cause=cause, changes=changes)])["two_shardings_at_start"]
    assert finding.seconds == pytest.approx(0.33)
    assert [each["path"] for each in finding.data["leaves"]] == ["state['w']", "state['b']"]
    assert finding.data["leaves"][0] == {"path": "state['w']", "before": "uncommitted", "after": "P('data')"}
    assert "`state['w']` was uncommitted, then P('data') and 1 more array" in finding.summary
    assert "with P('data') for `state['w']` and its own for each of the others" in finding.advice


def test_a_restored_checkpoint_commits_what_was_not_committed() -> None:
    """Orbax, and not the function, leaves its arrays so."""
    changes = [Change("state.count", "placement", "uncommitted", "committed to cpu:0")]
    advice = found([first(), again(cause="placement", changes=changes)])["two_shardings_at_start"].advice
    assert advice.endswith("commit `state.count` before the first call, too.")
    assert "where the function leaves them" not in advice


def test_two_shardings_at_start_from_two_places_only_when_dear() -> None:
    """Two callers may have two placements; where that costs much it is told all the same."""
    changes = [Change("x", "sharding", "P()", "P('data')")]
    assert not found([first(), again(cause="sharding", changes=changes, call_site="eval.py:7")])
    dear = again(cause="sharding", changes=changes, call_site="eval.py:7", phases={"compile": 40.0})
    assert set(found([first(), dear])) == {"two_shardings_at_start"}


def test_weak_type_at_start() -> None:
    """A Python scalar in the state that became an array is told at once, with the type to give it."""
    change = Change("state['step']", "weak_type", "float32[]{weak_type=True} (a Python float)", "float32[]")
    finding = found([first(), again(cause="weak_type", changes=[change])])["weak_type_at_start"]
    assert finding.advice == (
        "`state['step']` was a Python float before: pass jnp.asarray(value, jnp.float32) from the first call on."
    )
    assert finding.count == 1


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


def test_what_is_explained_at_once_is_reported_once() -> None:
    """A recompilation of four seconds for a weak type is no finding that is withdrawn a moment later."""
    change = Change("state['score']", "weak_type", "float32[]{weak_type=True} (a Python float)", "float32[]")
    dear = again(cause="weak_type", changes=[change], phases={"compile": 4.0})
    watching = patterns.Patterns()
    told = [each.finding for event in (first(), dear) for each in watching.see(event)]
    assert told == ["weak_type_at_start"]


def test_eager_operations_in_a_loop() -> None:
    """Operations that take ever new sizes at one line are told together, with the line and the operations."""
    events = []
    for n in range(20, 30):
        events.append(first("dynamic_slice", eager=True))
        events.append(again("sin", changes=[Change("x", "shape", f"float32[{n}]", f"float32[{n + 1}]")], eager=True))
    finding = found(events)["eager_recompiles"]
    assert finding.function == EAGER
    assert finding.subject == HERE
    assert finding.data["operations"] == {"dynamic_slice": 9, "sin": 9}
    assert finding.data["why"] == "sizes"
    assert "`sin`" in finding.evidence[0]


def test_eager_programs_compiled_again() -> None:
    """An eager scan with a new lambda compiles the same program each time."""
    events = [first("scan", eager=True, fingerprint="a")]
    events += [again("scan", cause, eager=True, fingerprint="a") for cause in ("unknown", "new_function", "unknown")]
    finding = found(events)["eager_recompiles"]
    assert finding.data["why"] == "same"
    assert "lax.scan" in finding.advice


def test_eager_operation_with_very_many_programs() -> None:
    """Slices of ever new lengths differ in parameters that no change names; their number tells."""
    finding = found([first("dynamic_slice", eager=True) for _ in range(40)])["eager_recompiles"]
    assert finding.data["why"] == "programs"


def test_recreated_functions() -> None:
    """A lambda made again in a loop is told by its line, as often as it was made."""
    events = [first("train.<lambda>", fingerprint="a")]
    events += [again("train.<lambda>", "new_function", fingerprint="a") for _ in range(5)]
    finding = found(events)["recreated_functions"]
    assert (finding.subject, finding.count) == (HERE, 5)
    assert "5 times at train.py:33" in finding.summary
    assert "the lambda" in finding.advice


def test_recreated_functions_by_cells_that_run_again() -> None:
    """Notebooks run cells again: no finding of any kind comes of it, however often."""
    events = [first("train.<lambda>", fingerprint="a")]
    events += [again("train.<lambda>", "new_function", fingerprint="a", by_rerun=True) for _ in range(30)]
    assert found(events) == {}


def test_recreated_functions_with_other_programs() -> None:
    """Closures over values that are compiled in are told when they are many."""
    events = [first("train.make.<locals>.f"), *(again("train.make.<locals>.f", "new_function") for _ in range(8))]
    assert found(events)["recreated_functions"].data["same_program"] == 0


def test_static_values() -> None:
    """A static argument with ever new values is named, with values."""
    finding = found(static(map(str, range(7))))["static_values"]
    assert (finding.subject, finding.count) == ("length", 6)
    assert finding.data["values"] == 7
    assert "as an array" in finding.advice
    assert "static_values" in found(static(f"'a{n}'" for n in range(12)))
    assert "static_values" in found(static(f"0.{n}" for n in range(12)))
    assert "static_values" in found(static(f"({n}, 8)" for n in range(20, 32)))


def test_static_values_that_are_not_shown() -> None:
    """With `static_values=False` only types are told; that the value differs is known all the same."""
    hidden = [again(cause="static_argument", changes=[Change("n", "static_argument", "int", "int (not equal)")])] * 12
    assert set(found([first(), *hidden])) - {"recompile_storm"} == {"static_values"}


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


def test_unbounded_structures() -> None:
    """A list that grows by an array at every call."""
    events = [
        again(cause="structure", changes=[Change(f"xs[{n}]", "structure", "absent", "float32[3]")]) for n in range(6)
    ]
    finding = found([first(), *events])["unbounded_structures"]
    assert finding.data["structures"] == 7
    assert "xs[5]" in finding.summary


# ----------------------------------------------------------------------------------------------------- negatives


def _shape(a: int, b: int, path: str = "x") -> Change:
    return Change(path, "shape", f"float32[{a}]", f"float32[{b}]")


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
        without = [each.count for each in patterns_of(resized(taken)) if each.finding == "unbounded_shapes"]
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
    watching = patterns.Patterns()
    for event in resized(GRID):
        watching.see(event)
    assert watching.settled(1.0) == watching.settled(2.0) == []


def patterns_of(events: Iterable[Compilation]) -> list[Finding]:
    """Findings of these compilations."""
    watching = patterns.Patterns()
    return [each for event in events for each in watching.see(event)]


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


def _standing(events: Iterable[Compilation]) -> list[Finding]:
    watching = patterns.Patterns()
    for event in events:
        watching.see(event)
    return watching.standing()


def test_a_finding_is_told_again_when_it_has_doubled() -> None:
    """The log stays bounded: told at 4, 8, 16, ... under one id, while it stands with its full count."""
    watching = patterns.Patterns()
    told = [each for event in resized(range(400, 100, -1)) for each in watching.see(event)]
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


def test_a_function_that_was_forgotten_begins_anew() -> None:
    """Among more functions than are watched, the one that compiled longest ago is forgotten, and told as it is then."""
    watching = patterns.Patterns()
    for event in [
        *resized(range(60, 50, -1)),
        *(first(f"f{n}") for n in range(patterns.MOST_FUNCTIONS) for _ in range(2)),
    ]:
        watching.see(event)
    assert watching.standing()[0].count == 9
    for event in resized(range(60, 53, -1)):
        watching.see(event)
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


# ------------------------------------------------------------------------------- models built operation by operation


def _layers(count: int, library: str | None, seconds: float = 0.1) -> list[Compilation]:
    sites = {"call_site": "train.py:12", "library_site": library}
    return [
        first("multiply" if number % 2 else "add", eager=True, phases={"compile": seconds}, **sites)
        for number in range(count)
    ]


def test_eager_initialization_names_cost_lines_and_the_way_of_the_library() -> None:
    """A model of Flax NNX: your line, the library's, what it took, and how it is built under one jit."""
    finding = found(_layers(30, "flax/nnx/nn/linear.py:407"))["eager_initialization"]
    assert "30 single operations outside any jitted function compiled one by one, which took 3 s" in finding.summary
    assert "train.py:12 (30)" in finding.summary and "(30), in flax/nnx/nn/linear.py" in finding.summary
    assert "nnx.jit(lambda: Model(rngs=nnx.Rngs(0)))()" in finding.advice


@pytest.mark.parametrize(
    ("library", "advice"),
    [
        ("penzai/nn/linear_and_affine.py:407", "pz.unbind_variables(build(key), freeze=True)"),  # no valid JAX types
        ("brax/envs/fast.py:31", "operations of brax, not of your code"),
        ("brax/envs/fast.py:31", "jax_compilation_cache_dir"),
    ],
)
def test_advice_on_a_model_follows_its_library(library: str, advice: str) -> None:
    """A library that has no way to build under jit is not the user's to change: a persistent cache helps."""
    assert advice in found(_layers(30, library))["eager_initialization"].advice


def test_layers_that_a_library_makes_in_a_loop_are_part_of_it() -> None:
    """Layers come from the same lines, and differ in their shapes."""
    sites = {"call_site": "train.py:12", "library_site": "haiku/_src/basic.py:180", "eager": True}
    events = [again("dot", changes=[_shape(n, n + 1)], phases={"compile": 0.1}, **sites) for n in range(30)]
    finding = found([first("dot", **sites), *events])["eager_initialization"]
    assert finding.count == 31
    assert "jax.jit(transformed.init)(key, x)" in finding.advice


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


@pytest.mark.parametrize(
    "events",
    [_layers(20, "flax/nnx/nn/linear.py:407"), _layers(30, None, seconds=0.01), [first(eager=False)] * 2],
    ids=["few", "quick", "functions"],
)
def test_a_few_operations_are_no_initialisation(events: list[Compilation]) -> None:
    """Every script makes some."""
    assert "eager_initialization" not in found(events)
