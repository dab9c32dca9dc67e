"""`jaxobs top` as somebody uses it: lists, orders, filters, details, another process; then in a real terminal."""

import random
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.answering import serving
from helpers.tmux import terminal
from helpers.top_snapshots import GIB, STARTED, CannedEndpoint, compilations, finding, overview, process, snapshot

from jaxobs.facts.compilations import Change
from jaxobs.facts.functions import FunctionState, Histogram, ProgramState
from jaxobs.facts.verdicts import Cost, Verdict, VerdictFinding
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import Line, as_text, cells
from jaxobs.views.terminal.text import ASCII
from jaxobs.views.top import Browser, Process
from jaxobs.web import endpoints

PROCESSES = (Process("http://127.0.0.1:9464/", 4711, "train.py"), Process("http://127.0.0.1:9465/", 4712, "serve.py"))
KEYS = [
    "up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter", "esc", "tab", "backtab", "backspace",
    "j", "k", "g", "G", " ", "s", "S", "<", ">", "r", "/", "?", "p", "m", "n", "N", "1", "2", "3", "4", "5", "x", "t",
    "ctrl-u",
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("in_utc")


def judged(**changed: Any) -> Overview:
    """A run with three findings, the third of which follows from the first."""
    found = (
        finding(0), finding(1, finding="cold_requests", evidence=("12 requests waited 3.1 s each.",), where="app.py:9"),
        finding(2, evidence=("2026-01-31T09:00:21Z train.py:61 first", "2026-01-31T09:00:22Z train.py:61 second")),
    )  # fmt: skip
    entries = [
        VerdictFinding(
            id=each.id, title=f"Title {index}.", severity="critical" if index == 2 else "warning",
            function=each.function, cost=Cost(seconds=each.seconds, share=0.31, count=17), do=each.advice,
            caused_by=found[2].id if index == 1 else None,
        )
        for index, each in ((2, found[2]), (1, found[1]), (0, found[0]))
    ]  # fmt: skip
    verdict = Verdict(verdict="fix", headline="Title 2.", findings=tuple(entries))
    return overview(snapshot=snapshot(**{"findings": found, "verdict": verdict, **changed}))


class Session:
    """A browser with a view, a size, and somebody at the keys."""

    def __init__(self, view: Overview | None = None, width: int = 80, height: int = 24, **surface: Any) -> None:
        self.browser = Browser(lambda: PROCESSES)
        self.view = view or judged()
        self.surface = Surface(width, height, **surface)
        self.draw()

    def draw(self) -> list[Line]:
        lines = self.browser.lay_out(self.view, self.surface)
        assert len(lines) == self.surface.height
        assert max(sum(cells(text) for text, _ in line) for line in lines) <= self.surface.width
        return lines

    def press(self, *keys: str) -> str:
        """Returns what is shown after these keys."""
        for key in keys:
            self.browser.press(key)
            self.draw()
        return as_text(self.draw())

    @property
    def selected(self) -> str:
        """The selected row, without its sign."""
        (line,) = [line for line in self.draw() if "selected" in {style for _, style in line}]
        text = "".join(text for text, _ in line)
        assert cells(text) == self.surface.width and text[0] == self.surface.glyphs.marker
        return text[1:].rstrip()


def test_tab_leads_through_the_views_and_digits_lead_to_one() -> None:
    """The one that is shown is in brackets, each list with its number; at the end it begins again."""
    session = Session()
    assert "Recent compilations" in session.press()
    shown = [re.search(r"\[(\w+)", session.press("tab")) for _ in range(3)]
    assert [each and each[1] for each in shown] == ["Findings", "Functions", "Compilations"]
    assert "Overview  Findings 3  [Functions 15]  Compilations 45  Memory" in session.press("backtab")
    assert "m back" in session.press("right", "tab") and "Recent compilations" in session.press("tab")
    assert "[Compilations" in session.press("4") and "[Functions" in session.press("left")
    assert "m back" in session.press("m") and "[Functions" in session.press("m")
    assert "Recent compilations" in session.press("esc")


SCROLLED = [
    ("3", "train_step"), ("j down", "<eager>"), ("k", "a_com"), ("pagedown", "helper_07"),
    ("pagedown " * 9, "helper_00"), ("down", "helper_00"), ("pageup up", "helper_07"), ("home up", "train_step"),
    ("G", "helper_00"), ("g", "train_step"),
]  # fmt: skip


def test_a_list_scrolls_with_its_selection() -> None:
    """By rows, by pages, and to both ends, as in a pager; never beyond."""
    session = Session(height=12)
    for keys, selected in SCROLLED:
        session.press(*keys.split())
        assert session.selected.startswith(selected), keys
    assert "helper_11" in session.press("pagedown") and "train_step" not in session.press("pagedown")
    fast = Session()
    for key in ("3", "down", "down", "/", *"helper", "enter", "end", "enter"):
        fast.browser.press(key)  # so many may come before anything is drawn
    assert "Functions 12 of 12" in fast.press()


def test_the_selection_follows_its_item() -> None:
    """Not its number; one that is gone gives way to its neighbour; whoever is at the top stays there."""
    session = Session()
    newer = replace(compilations()[-1], sequence=60, function="__main__.newest", time=STARTED + 190)
    session.press("4")
    assert "MultiHeadAttention" in session.selected or "Attention.__call__" in session.selected
    session.view = replace(session.view, compilations=(*session.view.compilations, newer))
    assert "newest" in session.selected
    session.press("down", "down")
    assert "dtype" in session.selected
    session.view = replace(session.view, compilations=(*session.view.compilations, replace(newer, sequence=61)))
    assert "dtype" in session.selected
    without = tuple(each for each in session.view.compilations if each.cause != "dtype")
    session.view = replace(session.view, compilations=without)
    assert "train_step" in session.selected and "shape" in session.selected
    session.view = replace(session.view, compilations=())
    assert "Nothing has compiled yet." in session.press("down", "enter", "pagedown")


ORDERED = [
    ("3", "seconds", "seconds", "train_step"), ("s", "compilations", "comp.", "<eager>"),
    (">", "calls", "calls", "train_step"), ("< r", "compilations, reversed", "comp.", "helper_11"),
    ("< <", "name", "function", "<eager>"), ("s", "seconds", "seconds", "train_step"),
]  # fmt: skip


def test_order() -> None:
    """`s` and `>` go through the orders, `<` back, `r` reverses; the title says by what, the column stands out."""
    session = Session(width=130)
    for keys, title, column, selected in ORDERED:
        session.press(*keys.split())
        told = re.findall(r"─ by ([\w ,]+)", as_text(session.draw()))[0]
        marked = "".join(text.strip() for line in session.draw() for text, style in line if style == "ordered")
        assert (told, marked, session.selected.split()[0]) == (title, column, selected), keys
    nonfinite = Session(judged(findings=(finding(0, finding="nonfinite_values", seconds=0.0, count=317),)))
    assert re.search(r"nonfinite values +decode_0 +317 ", nonfinite.press("2"))
    found = Session(width=130)
    found.press("2")
    assert "decode_2" in found.selected
    found.press("s", "r")
    assert "decode_0" in found.selected


def test_each_order_of_each_list_can_be_seen() -> None:
    """In a narrow terminal too: the column by which it is ordered stays."""
    session = Session(width=40, height=12)
    for tab in "234":
        session.press(tab)
        orders = len(session.browser._lists[{"2": "findings", "3": "functions", "4": "compilations"}[tab]].orders)
        assert orders >= 4
        for _ in range(orders):
            order = session.browser._listing().orders[session.browser._place().order]  # type: ignore[union-attr]
            text = session.press()
            assert f"by {order.name}" in text or len(order.name) > 12
            known = {"errors": True, "calls": True, "seconds": True, "cause": True, "comp.": True, "count": True}
            assert order.column in text or order.column not in known
            session.press("s")


def test_filter() -> None:
    """Letters narrow the list while they are typed, among them those that are keys elsewhere; Esc shows all again."""
    session = Session()
    assert "/q_" in session.press("3", "/", "q") and not session.browser.done
    assert "Nothing matches `q`." in session.press()
    session.press("backspace", *"HELPER 1")
    assert session.selected.startswith("helper_11")
    assert "3 of 15" in session.press()
    session.press("down")
    assert session.selected.startswith("helper_10")
    assert "/HELPER 1 (Esc clears)" in session.press("enter")
    assert "Functions 3 of 3" in session.press("j", "enter")
    assert "3 of 15" in session.press("esc")
    assert "helper_00" in session.press("esc") and "/ filter" in session.press()
    assert "by" in session.press("/", "x", "y", "ctrl-u", "backspace", "s") and "compilations" in session.press()
    assert "Functions 15 ─" in session.press("esc", "/", "tab")
    session.press("4", "/", *"dtype", "enter")
    assert "dtype" in session.selected and "1 of 45" in session.press()


def test_enter_in_the_overview_opens_the_worst_finding(whole: Callable[[str, str], None]) -> None:
    """With its whole text, what it costs, what to do, what follows from it and what shows it."""
    session = Session(height=40)
    whole("worst finding", session.press("enter"))
    whole("next finding", session.press("n"))
    assert "decode_2" in session.press("N") and "[Findings 3]" in session.press("esc")
    low = Session()
    assert "61 second" not in low.press("enter") and "train.py:61 second" in low.press("end")
    session.view = overview()
    assert "[Functions" in session.press("esc", "enter")


def whole_function() -> FunctionState:
    """A function of which everything is known."""
    return FunctionState(
        name="__main__.train_step",
        calls=12_345,
        compilations={"first_call": {"miss": 1}, "shape": {"miss": 2, "hit": 1}},
        phase_seconds={"trace": 0.6, "compile": 4.2},
        phase_counts={"trace": 5, "compile": 4},
        errors={"ValueError": 2},
        error_kinds={"tracer_leak": 1},
        fastpath_misses={"effects": 7},
        fastpath_reason="It prints from inside.",
        dispatch=Histogram((0.001, 0.01), (90, 8, 2), 0.4),
        device=Histogram((0.1,), (4, 0), 0.2),
        device_skipped={"late": 3},
        last_compiled=STARTED + 184,
        last_reason="`__main__.train_step`: because.",
        program=ProgramState(
            time=STARTED, fingerprint="c0ffee", flops=2e12, all_flops=8e12, bytes_accessed=3e9,
            memory={"argument": 2 * GIB, "temp": GIB}, instructions={"fusion": 41, "collective": 2},
            collective_bytes={"all-reduce": GIB},
        ),
        out_of_memory={"gpu:0": 1},
    )  # fmt: skip


def test_details(whole: Callable[[str, str], None]) -> None:
    """Causes, phases, program, times, slow calls, errors, call sites, and each compilation with its reason."""
    view = judged(functions=(whole_function(),), findings=(finding(1, function="__main__.train_step"),))
    whole("function", Session(view, width=110, height=90).press("3", "enter"))
    bare = judged(functions=(FunctionState(name="f"),))
    whole("function that is not instrumented", Session(bare, width=110, height=30).press("3", "enter"))
    whole("eager operations", Session(width=110, height=50).press("3", "down", "down", "enter"))
    event = replace(
        compilations()[-2], flops=1e12, memory={"temp": GIB}, uncached_detail="Compiled in 0.8 s.", fingerprint="beef",
        changes=(Change("scale", "weak_type", "int", "float"), Change("", "context", "a", "b")),
        library_site="flax/x.py:1",
    )  # fmt: skip
    whole("compilation", Session(replace(judged(), compilations=(event,)), width=100, height=40).press("4", "enter"))


def test_details_stay_when_their_item_is_gone() -> None:
    """As they were last, and they say so; what is still there is brought up to date."""
    session = Session()
    session.press("3", "enter")
    session.view = judged(functions=(replace(snapshot().functions[0], calls=77_777),))
    assert "77,777" in session.press()
    session.view = judged(functions=())
    assert "77,777" in session.press() and "no longer reports it" in session.press()
    assert "Nothing has compiled yet." in session.press("esc")


def test_another_process_can_be_picked(whole: Callable[[str, str], None]) -> None:
    """From anywhere, with the one that is shown marked; an address that does not answer leaves all as it was."""
    session = Session()
    whole("processes", session.press("3", "enter", "p"))
    assert "Function  " in session.press("esc")
    session.press("p", "/", *"serve", "enter", "enter")
    assert session.browser.wanted == PROCESSES[1].url
    session.browser.connected("No jaxobs endpoint there.")
    text = session.press()
    assert " No jaxobs endpoint there.\n" in text and "serve.py" in text
    assert "endpoint there" not in session.press("down")
    session.browser.connected()
    assert "[Functions 15]" in session.press() and session.selected.startswith("train_step")
    alone = Session()
    alone.browser = Browser()
    assert "No process on this machine serves an endpoint." in alone.press("p", "enter")
    assert alone.browser.wanted is None


def test_overview_and_memory_scroll() -> None:
    """Lines that do not fit can be reached: below the first one all of them are there, to the last."""
    session = Session(judged(findings=tuple(finding(index) for index in range(30))))
    assert "more findings" in session.press()
    text = session.press("down")
    assert "more findings" not in text and "decode_29" in text
    assert "Somebody removed our listeners" in session.press("end")
    assert "more findings" in session.press("home")
    session.view = replace(session.view, snapshot=snapshot(findings=(), functions=(), devices=(), in_progress=()))
    session.view = replace(session.view, compilations=())
    assert session.press("down", "end") == session.press("home")


def test_help_lists_the_keys(whole: Callable[[str, str], None]) -> None:
    """The view is left by the same key, or by Esc."""
    session = Session(height=40)
    whole("help", session.press("3", "?"))
    assert "[Functions" in session.press("?") and "[Functions" in session.press("?", "esc")
    for keys in ("4 enter q", "4 enter Q", "4 enter ctrl-c", "4 enter ctrl-d", "3 / ctrl-c"):
        one = Session()
        one.press(*keys.split())
        assert one.browser.done, keys


@pytest.mark.parametrize("seed", range(12))
def test_any_keys_at_any_size(seed: int) -> None:
    """However keys, sizes and news come, it fits the terminal, and nothing from the process gets to it raw."""
    rng = random.Random(seed)
    text = "\x1b[2J\u202e`x` " * 3
    evil = replace(whole_function(), name=text, last_reason=text, fastpath_reason=text, errors={text: 1})
    event = replace(compilations()[-1], function=text, reason=text, call_site=text, library_site=text, cause=text)
    views = [
        judged(), overview(), overview(snapshot=snapshot(functions=(), findings=(), devices=()), compilations=()),
        replace(judged(functions=(evil, *snapshot().functions), process=process(program=text)),
                compilations=(event, *compilations())),
        judged(findings=tuple(finding(n, summary=text, advice=text, where=text, evidence=(text,)) for n in range(40))),
    ]  # fmt: skip
    glyphs = {"glyphs": ASCII, "encoding": "ascii", "colour": False} if seed % 2 else {}
    session = Session(**glyphs)
    session.browser = Browser(lambda: [*PROCESSES, Process("http://x/", 1, text)] if seed % 3 else [])
    for _ in range(150):
        if rng.random() < 0.2:
            session.surface = replace(
                session.surface, width=rng.choice([20, 40, 80, 200]), height=rng.choice([3, 4, 8, 12, 24, 50])
            )
        if rng.random() < 0.2:
            session.view = rng.choice(views)
            gone = STARTED + 200 if rng.random() < 0.3 else None
            session.view = replace(session.view, connection=replace(session.view.connection, gone_since=gone))
        drawn = session.press(rng.choice(KEYS))
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", drawn)
        assert not seed % 2 or drawn.isascii()
        if session.browser.wanted is not None:
            session.browser.wanted = None
            session.browser.connected("" if rng.random() < 0.5 else text)


# --------------------------------------------------------------------------------- in a real terminal


@pytest.mark.parametrize(("width", "height", "colour"), [(80, 24, True), (40, 12, False)])
def test_browsing_in_a_terminal(tmp_path: Path, width: int, height: int, colour: bool) -> None:
    """With the keys as a terminal sends them: lists, filter, details, another process, the end of the first one."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    first = CannedEndpoint(judged().snapshot, compilations())
    second = CannedEndpoint(snapshot(process=process(program="serve.py", pid=4800)), compilations()[:3])
    variables = f"XDG_RUNTIME_DIR={shlex.quote(str(folder))}" + ("" if colour else " NO_COLOR=1")
    with (
        serving(first.answer) as one, serving(second.answer) as two, terminal(tmp_path, width, height) as tmux,
        pytest.MonkeyPatch.context() as patch,
    ):  # fmt: skip
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        for url, program in ((one, "train_digits.py"), (two, "serve.py")):
            endpoints.announce(f"{url}/", int(url.rpartition(":")[2]), program)
        tmux.type(f"{variables} {shlex.quote(sys.executable)} -m jaxobs top {one} --interval 0.2", "Enter")
        tmux.await_text(r"● live(?s:.*)q quit")
        tmux.type("Enter")
        tmux.await_text(r"Findings 1 of 3(?s:.*)CRITICAL")
        tmux.type("Escape")
        tmux.await_text("▸unbounded shapes")
        tmux.type("C-z")
        assert "Overview" not in tmux.await_text(r"(?s)Stopped.*ready>\s*$")
        tmux.type("fg", "Enter")
        tmux.await_text("▸unbounded shapes")
        tmux.type("Tab", "Down", "Down")
        tmux.await_text("▸<eager>")
        tmux.type("/")
        tmux.type("helper_0", "Enter", "End")
        tmux.await_text("▸helper_00(?s:.*)/helper_0 ")
        tmux.type("Enter")
        tmux.await_text(r"Functions 10 of 10(?s:.*)helper_00")
        tmux.type("p")
        tmux.await_text("Processes(?s:.*)serve.py")
        tmux.resize(width + 20, height + 6)
        tmux.type("/")
        tmux.type("serve", "Enter", "Enter")
        assert "train_digits" not in tmux.await_text(r"(?m)^ serve\.py .*● live")
        tmux.type("q")
        tmux.await_text(r"ready>\s*$")
        tmux.type("echo code $?; stty -a | grep -oE -- '-?icanon'", "Enter")
        tmux.await_text(r"(?m)^code 0\nicanon$")
