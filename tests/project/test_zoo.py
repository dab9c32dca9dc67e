"""The zoo fails where it should: on each kind of difference, and on a known one that is gone."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tools.zoo import __main__ as main
from tools.zoo import comparing, first_sentence, running, stopwatch, systems, table
from tools.zoo.entry import Entry, Finding, FirstTry, Loop
from tools.zoo.running import Outcome, Pair

ENTRY = Entry(
    projects=("flax",), says="Sound.", causes={"train_step": {"first_call": 1, "shape": 1}},
    findings=(Finding("eager_initialization"), Finding("unbounded_shapes", "train_step")),
    loop=Loop("train_step", 100),
)  # fmt: skip
SECONDS = {"compile": 2.0, "step": 6.0, "other": 2.0}


def _compilation(function: str, cause: str = "first_call", *, eager: bool = False) -> dict[str, Any]:
    changes = [{"path": "x", "what": cause, "before": "f32[8]", "after": "f32[7]"}] if cause == "shape" else []
    known = {"function": function, "cause": cause, "eager": eager}
    return {"event": "compilation", "reason": "", "changes": changes, **known}


def _finding(id: str, kind: str, function: str) -> dict[str, Any]:
    told = {"summary": "It is so.", "advice": "Do so.", "evidence": []}
    return {"event": "finding", "id": id, "finding": kind, "function": function, **told}


def _exit(steps: int = 100, step: float = 6.0, idle: float = 0.0) -> dict[str, Any]:
    wall = {"seconds": {"init": 8.0 - step - idle, "trace": 0.5, "compile": 1.5, "step": step, "idle": idle}}
    return {"event": "exit", "standing": {"wall": wall, "loops": [{"name": "__main__.train_step", "steps": steps}]}}


EVENTS = (
    _compilation("multiply", eager=True),
    _compilation("__main__.train_step"),
    _compilation("__main__.train_step", "shape"),
    _finding("1", "eager_initialization", "<eager>"),
    _finding("2", "unbounded_shapes", "__main__.train_step"),
    _finding("2", "unbounded_shapes", "__main__.train_step"),
    _exit(),
)
PLAIN = Outcome(code=0, out="loss 0.1\n", errors="took 1 s\n", seconds=SECONDS, programs=3)
WATCHED = dataclasses.replace(PLAIN, errors="took 2 s\n", events=EVENTS, metrics="jaxobs_collect_seconds 1\n")


def keys(entry: Entry = ENTRY, **changed: Any) -> set[str]:
    watched = dataclasses.replace(WATCHED, **changed)
    return set(comparing.compare(entry, Pair((PLAIN,), (watched,))).differences)


def test_what_is_expected_is_no_difference() -> None:
    assert keys() == set()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"out": "loss 0.2\n"}, {"output"}),
        ({"code": 1}, {"output"}),
        ({"errors": "took 2 s\njaxobs: hello\n"}, {"noise"}),
        ({"metrics": 'jaxobs_internal_errors_total{where="x"} 2.0\n'}, {"internal errors"}),
        ({"programs": 4}, {"count"}),
        ({"events": (*EVENTS, _compilation("__main__.other"))}, {"count"}),
        ({"events": (*EVENTS[:2], _compilation("__main__.train_step", "dtype"), *EVENTS[3:])}, {"causes train_step"}),
        ({"events": (_compilation("__main__.f", "dtype"), *EVENTS[1:])}, {"causes f"}),
        ({"events": (*EVENTS[:3], *EVENTS[4:])}, {"finding eager_initialization"}),
        ({"events": (*EVENTS, _finding("3", "array_leak", "f"))}, {"finding array_leak of f"}),
        ({"events": (*EVENTS, {"event": "nonfinite"})}, {"nonfinite"}),
        ({"events": (*EVENTS[:-1], _exit(steps=90))}, {"loop"}),
        ({"events": (*EVENTS[:-1], _exit(step=5.0))}, {"time step", "time other"}),
    ],
)
def test_each_kind_of_difference_is_found(changed: dict[str, Any], expected: set[str]) -> None:
    assert keys(**changed) == expected


def test_steps_of_which_not_all_were_seen_are_not_compared() -> None:
    """The loop is compared, and so is a number that is said to be all of its steps."""
    some = [{"name": "__main__.train_step", "steps": 60, "steps_counted": False}]
    ended = _exit()
    ended["standing"]["loops"] = some
    assert keys(events=(*EVENTS[:-1], ended)) == set()
    some[0]["steps_counted"] = True
    assert keys(events=(*EVENTS[:-1], ended)) == {"loop"}


def test_a_sentence_that_its_facts_refute_is_a_difference() -> None:
    event = _compilation("__main__.train_step", "shape") | {"reason": "`x` is a Python float now."}
    assert keys(events=(*EVENTS[:2], event, *EVENTS[3:])) == {"sentences"}


def test_known_differences_hold_in_both_directions() -> None:
    """A difference that is gone fails as a new one does, but for times, which lie on either side of their bound."""
    late = dataclasses.replace(WATCHED, events=(*EVENTS[:-1], _exit(steps=90)))
    known = dataclasses.replace(ENTRY, differs={"loop": "It is named after the loader.", "time step": "Unknown."})
    result = comparing.compare(known, Pair((PLAIN,), (late,)))
    assert (result.new, result.gone) == ((), ())
    assert "**loop**: It is named after the loader." in table.markdown({"p": known}, {"p": result})
    result = comparing.compare(known, Pair((PLAIN,), (WATCHED,)))
    assert (result.new, result.gone) == ((), ("loop",))


def test_what_does_not_run_keeps_its_row() -> None:
    """A program that is gone has no row, and a new program has none yet."""
    result = comparing.compare(ENTRY, Pair((PLAIN,), (WATCHED,)))
    both = table.markdown({"p": ENTRY, "gone": ENTRY}, {"p": result, "gone": result})
    entries = {"new": ENTRY, "p": ENTRY, "q": ENTRY}
    page = table.markdown(entries, {"q": result}, both)
    assert [line for line in page.splitlines() if "programs/p.py" in line] == [
        line for line in both.splitlines() if "programs/p.py" in line
    ]
    assert "programs/q.py" in page and "programs/gone.py" not in page and "programs/new.py" not in page
    assert "2 programs of 1 projects" in page


def test_only_records_of_first_runs_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [dataclasses.replace(ENTRY, first_try=each) for each in (FirstTry("right"), FirstTry("half", "no loop"))]
    monkeypatch.setattr(main, "entries", lambda: {"a": tried[0], "b": tried[1], "c": ENTRY})
    monkeypatch.setattr(table, "ROUNDS", [{"d": FirstTry("wrong")}, {"e": FirstTry("right"), "f": FirstTry("half")}])
    assert main.main(["--first-tries"]) == 0
    told, *each = capsys.readouterr().out.splitlines()
    assert told.startswith("For 5 programs,") and "; 3 of them" in told
    assert "right on 2, half right on 2 and wrong on 1." in told
    assert each == [
        "2 programs of the zoo: right on 1, half right on 1 and wrong on 0",
        "round 1, 1 programs: right on 0, half right on 0 and wrong on 1",
        "round 2, 2 programs: right on 1, half right on 1 and wrong on 0",
        "The newest round, of 2 programs: right on 1, half right on 1 and wrong on 0",
        *("a: right", "b: half: no loop", "d: wrong", "e: right", "f: half"),
    ]


def test_the_readme_quotes_the_newest_round() -> None:
    newest = next(each for each in table.first_tries(main.entries()) if each.startswith("The newest round"))
    said = " ".join((main.systems.ROOT / "README.md").read_text(encoding="utf-8").split())
    assert newest.replace("The newest round, of", "In the newest blind round, of").replace(":", ", jaxobs was") in said


def test_a_verdict_is_compared_where_the_entry_has_one() -> None:
    known = dataclasses.replace(ENTRY, verdict="ok")
    assert (keys(known, verdict="ok"), keys(known, verdict="watch"), keys(verdict="watch")) == (
        set(),
        {"verdict"},
        set(),
    )


def test_a_time_that_no_entry_knows_of_fails() -> None:
    """Beyond a twentieth of the process's time; on which side of its bound a known one lies does not matter."""
    for step, new in ((5.6, ()), (5.4, ("time step", "time other"))):
        slow = dataclasses.replace(WATCHED, events=(*EVENTS[:-1], _exit(step=step)))
        result = comparing.compare(ENTRY, Pair((PLAIN,), (slow,)))
        assert (result.new, result.gone) == (new, ())
    known = dataclasses.replace(ENTRY, differs={"time step": "Unknown.", "time other": "Unknown."})
    assert not comparing.compare(known, Pair((PLAIN,), (slow,))).new


@pytest.mark.parametrize(
    ("step", "idle", "expected"),
    [
        (5.2, 0.4, set()),
        (5.2, 0.2, {"time step", "time other"}),
        (5.0, 1.0, {"time step", "time other"}),
        (6.6, 0.4, {"time step", "time other"}),
    ],
)
def test_a_stalled_turn_is_no_difference(step: float, idle: float, expected: set[str]) -> None:
    """As far as jaxobs calls it idle, and not much of that; nor is there ever more of a loop than there was."""
    assert keys(events=(*EVENTS[:-1], _exit(step=step, idle=idle))) == expected


def test_what_differs_in_one_of_two_runs_is_not_new() -> None:
    """A difference in one run comes from other work on the machine; a fault differs in both."""
    known = dataclasses.replace(ENTRY, differs={"loop": "It is named after the loader."})
    late = dataclasses.replace(WATCHED, events=(*EVENTS[:-1], _exit(step=5.4, steps=90)))
    off = comparing.compare(known, Pair((PLAIN,), (late,)))
    fine = comparing.compare(known, Pair((PLAIN,), (WATCHED,)))
    assert (off.new, off.gone) == (("time step", "time other"), ())
    assert (fine.new, fine.gone) == ((), ("loop",))
    assert comparing.in_both(off, off) == off and comparing.in_both(fine, fine) == fine
    for first, second in ((off, fine), (fine, off)):
        assert not comparing.in_both(first, second).differs


def test_a_program_that_differs_is_run_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second difference fails, and what differs comes last, where the output of CI is cut."""
    fine, off = (
        comparing.compare(ENTRY, Pair((PLAIN,), (WATCHED,))),
        comparing.compare(ENTRY, Pair((PLAIN,), (dataclasses.replace(WATCHED, out="no\n"),))),
    )
    ran: list[str] = []

    def one(name: str, entry: object, **_: object) -> tuple[comparing.Result, float]:
        ran.append(name)
        return (off if name == "bad" or (ran.count(name) == 1 and name == "once") else fine), 1.0

    monkeypatch.setattr(main, "_one", one)
    monkeypatch.setattr(main, "entries", lambda: {"bad": ENTRY, "good": ENTRY, "once": ENTRY})
    monkeypatch.setattr(main.environments, "environment", lambda row: None)
    assert main.main(["--jobs", "1"]) == 1
    assert ran == ["bad", "good", "once", "bad", "once"]
    closing = capsys.readouterr().out.splitlines()[-4:]
    assert closing[:2] == ["once: differed in the first of two runs", "bad: FAILED"]
    assert closing[2].startswith("  DIFFERS: output: ") and closing[3] == "2 passed, 1 failed"
    assert main.main(["good", "once"]) == 0


def test_the_stopwatch_gives_each_second_to_one_category(tmp_path: Path) -> None:
    told = {
        "began": 0.0, "ended": 20.0, "marks": [[2.0, "step"], [10.0, "other"]], "past": [[12.0, 15.0, "eval"]],
        "compiling": [[1.0, 3.0], [1.5, 2.5], [14.0, 16.0]], "programs": 2,
    }  # fmt: skip
    (tmp_path / "told").write_text(json.dumps(told))
    seconds, programs = stopwatch.seconds(tmp_path / "told")
    assert seconds == {"compile": 4.0, "step": 7.0, "eval": 2.0, "other": 7.0}
    assert sum(seconds.values()) == 20.0
    assert programs == 2


def test_marks_become_calls_in_their_lines() -> None:
    source = "def f():\n    #: eval\n    x = 1  #: not one\n    #: ended ('step', x)\n"
    assert stopwatch.with_marks(source).splitlines() == [
        "def f():", '    zoo_mark("eval")', "    x = 1  #: not one", "    zoo_ended(('step', x))"
    ]  # fmt: skip


def test_every_program_has_an_entry() -> None:
    known = main.entries()
    programs = {path.stem for folder in (running.PROGRAMS, running.EXAMPLES) for path in folder.glob("*.py")}
    assert programs == {*known}
    assert len(programs) >= 15
    assert len({project for entry in known.values() for project in entry.projects}) >= 12


def test_the_table_of_systems_is_fresh() -> None:
    """`python -m tools.zoo.systems` writes it again; pages and examples of its rows are there."""
    page, known = (systems.PAGES / "README.md").read_text(encoding="utf-8"), main.entries()
    assert systems.markdown(known, {}, page) == page
    shown = {each.example for each in systems.systems() if each.example}
    assert shown <= set(known) and {path.stem for path in running.EXAMPLES.glob("*.py")} <= shown


def test_each_section_has_the_commands_of_its_example() -> None:
    """`python -m tools.zoo.first_sentence` times them; a system that it has timed still has commands."""
    typed = {each.name: first_sentence.commands(each) for each in systems.systems()}
    for system in systems.systems():
        if system.example:
            first, last = typed[system.name].splitlines()[0], typed[system.name].splitlines()[-1]
            assert first.startswith("pip install .") and last == "jaxobs explain events.jsonl", system.name
            assert f"examples/systems/{system.example}.py" in typed[system.name]
    assert typed["FastAPI"].endswith("jaxobs explain localhost:9464\n") and "curl" in typed["FastAPI"]
    timed = {*json.loads(systems.FIRST_SENTENCES.read_text())}
    assert timed <= {each for each in typed if typed[each]}
    assert {each.name for each in systems.systems() if each.example} <= timed


def test_each_section_says_what_jaxobs_adds_and_does_not_see() -> None:
    for system in systems.systems():
        section = first_sentence.page_of(system)[1]
        lacking = [each for each in ("**What jaxobs adds:** ", "**What it doesn't see:** ") if each not in section]
        assert lacking == [], system.name


def test_a_page_shows_what_is_printed(tmp_path: Path) -> None:
    """A word that is gone is a difference; figures, and the account, may be those of another run."""
    text = "OK  Took 1 s\n\n Where the time went ───\n sss idle\n\n Steps ───\n train_step  5 steps\n"
    block = systems.filled("<!-- printed by p: Where, Steps -->\n\n```text\n```\n", {"p": text})
    assert "sss idle" in block and block.endswith("train_step  5 steps\n```\n")
    (tmp_path / "page.md").write_text(block, encoding="utf-8")
    now = "FIX  It took longer\n\n Steps ───\n train_step  5 steps\n"
    assert list(systems.untrue("p", now, tmp_path)) == []
    assert list(systems.untrue("p", now.replace("5 steps", "9 per second"), tmp_path)) == []
    gone = list(systems.untrue("p", now.replace("train_step", "update"), tmp_path))
    assert gone == ["page.md shows train_step, which it does not print"]
