"""Files for other tools, read back."""

import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import xplanes
from helpers.xplanes import event, operation

from jaxobs import cli
from jaxobs.cli.profiling import folded, perfetto, pprof
from jaxobs.facts.profiles import OperationTime, Profile
from jaxobs.internals.xplane import wire
from jaxobs.profiles import reading, stacks
from jaxobs.profiles.reading import Reading

US = 1000.0


@pytest.fixture
def found(tmp_path: Path) -> Reading:
    """A step with a loop and a gap in which something compiled."""
    return reading.read(
        xplanes.write(
            tmp_path / "trace",
            xplanes.host(
                python=[
                    event("train", 0, 10 * US, step_num=3), event("PjitFunction(f)", 0, 1 * US),
                    event("backend_compile", 11 * US, 14 * US),
                ],
                worker=[
                    operation("while.1", 0, 10 * US), operation("dot.2", 1 * US, 4 * US),
                    operation("add.3", 15 * US, 20 * US, device=1),
                ],
            ),
        )
    )  # fmt: skip


def row(scope: str | None, function: str | None = "train_step", operation: str = "dot.1") -> OperationTime:
    return OperationTime(
        operation=operation, function=function, category="matmul", scope=scope, source="train.py:3",
        device_seconds=2e-6, share=1.0, count=2, flops=None, bytes=None, bound="unknown",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("jit(train_step)/layer1/dot_general", ("train_step", "layer1", "dot_general", "dot.1")),
        ("jit(train_step)/transpose(jvp(a/b))/mul", ("train_step", "transpose(jvp(a/b))", "mul", "dot.1")),
        ("jit(other)/mul", ("train_step", "jit(other)", "mul", "dot.1")),
        ("a)/b", ("train_step", "a)", "b", "dot.1")),
        ("", ("train_step", "dot.1")),
        (None, ("train_step", "dot.1")),
    ],
)
def test_a_scope_is_a_stack(scope: str | None, expected: tuple[str, ...]) -> None:
    """Divided at slashes outside of brackets; the function isn't said twice."""
    assert stacks.frames(row(scope)) == expected


def test_stacks_make_a_tree() -> None:
    """Each frame has the time of all that is inside."""
    root = stacks.tree([row("jit(train_step)/a/x"), row("jit(train_step)/a/y"), row(None, None, "memcpy")])
    assert root.seconds == pytest.approx(6e-6)
    assert root.inside["train_step"].inside["a"].seconds == pytest.approx(4e-6)
    assert list(root.inside) == ["train_step", stacks.NO_FUNCTION]


def test_folded_stacks(found: Reading) -> None:
    assert folded.folded(found.profile).splitlines() == ["f;while.1 7", "f;add.3 5", "f;dot.2 3"]


def decoded(data: bytes) -> dict[int, list[Any]]:
    """The fields of a message by number."""
    found: dict[int, list[Any]] = defaultdict(list)
    for number, value in wire.fields(data):
        found[number].append(value)
    return found


def test_pprof_has_each_stack_with_time_runs_and_category(found: Reading) -> None:
    """By the format's own numbers of fields."""
    made = decoded(gzip.decompress(pprof.pprof(found.profile, 100.0)))
    texts = [each.decode() for each in made[6]]
    assert texts[0] == ""
    kinds = [[texts[each] for field in (1, 2) for each in decoded(kind)[field]] for kind in made[1]]
    assert kinds == [["device", "nanoseconds"], ["runs", "count"]]
    functions = {decoded(each)[1][0]: texts[decoded(each)[2][0]] for each in made[5]}
    locations = {decoded(each)[1][0]: functions[decoded(decoded(each)[4][0])[1][0]] for each in made[4]}
    samples = {}
    for part in map(decoded, made[2]):
        stack = tuple(locations[place] for place in wire.integers(part[1][0]))
        label = decoded(part[3][0])
        samples[stack] = (*wire.integers(part[2][0]), texts[label[1][0]], texts[label[2][0]])
    assert samples == {
        ("while.1", "f"): (7000, 1, "category", "control"),
        ("add.3", "f"): (5000, 1, "category", "elementwise"),
        ("dot.2", "f"): (3000, 1, "category", "matmul"),
    }
    assert made[10] == [20_000]
    assert made[9] == [100_000_000_000 - 20_000]


def test_pprof_begins_with_the_innermost_frame() -> None:
    """The line of the source belongs to the operation."""
    profile = Profile(window_seconds=1.0, steps=None, operations=(row("jit(train_step)/layer1/mul"),))
    made = decoded(gzip.decompress(pprof.pprof(profile)))
    texts = [each.decode() for each in made[6]]
    functions = {each[1][0]: (texts[each[2][0]], texts[each[4][0]]) for each in map(decoded, made[5])}
    locations = {each[1][0]: decoded(each[4][0]) for each in map(decoded, made[4])}
    [sample] = map(decoded, made[2])
    stack = [locations[place] for place in wire.integers(sample[1][0])]
    assert [functions[each[1][0]] for each in stack] == [
        ("dot.1", "train.py"), ("mul", ""), ("layer1", ""), ("train_step", ""),
    ]  # fmt: skip
    assert stack[0][2] == [3]
    assert 9 not in made


def test_perfetto_has_tracks_for_operations_steps_compilations_and_idle_time(
    found: Reading, whole: Callable[[str, str], None]
) -> None:
    """Slices on named tracks, in microseconds."""
    events = json.loads("".join(perfetto.perfetto(found)))["traceEvents"]
    whole("perfetto", "\n".join(map(json.dumps, events)))


def test_files_are_written_beside_the_text(found: Reading, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(tmp_path / "trace")
    paths = {name: tmp_path / name for name in ("pprof", "perfetto", "folded")}
    options = [each for name, path in paths.items() for each in (f"--{name}", str(path))]
    assert cli.main(["profile", trace, *options]) == 0
    assert "Devices" in capsys.readouterr().out
    assert paths["folded"].read_text() == folded.folded(found.profile)
    assert json.loads(paths["perfetto"].read_text())["traceEvents"]
    assert gzip.decompress(paths["pprof"].read_bytes())
    assert cli.main(["profile", trace, "--folded", "-"]) == 0
    assert capsys.readouterr().out == folded.folded(found.profile)
    assert cli.main(["profile", trace, "--folded", str(tmp_path / "missing" / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert cli.main(["profile", trace, "--folded", "-", "--json"]) == 2
    assert "Only one thing" in capsys.readouterr().err
    assert cli.main(["profile", trace, "--compare", trace, "--folded", "-"]) == 2
    assert "without `--compare`" in capsys.readouterr().err
