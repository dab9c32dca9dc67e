"""The live page, in a real browser: it shows the facts, follows them, and says so when it cannot."""

import re
from dataclasses import replace

import pytest
from helpers import page_fixtures
from helpers.page_facts import GIB, NOW, PID, compilation, events, function, gpu, memory, on_cpu, process, rich
from helpers.page_fixtures import Opener, chrome, chromium, opened, order, row, serving
from playwright.sync_api import expect

from jaxobs.base.symptoms import SECTIONS, symptom_url
from jaxobs.facts.compilations import CAUSES, EAGER, PHASES, Change, OpenCompilation
from jaxobs.facts.process import ObserverState
from jaxobs.web.page import render

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

BOUND_ROWS = 200


@pytest.mark.parametrize("ci,outcome", [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_missing_browser_skips_on_a_desk_and_fails_in_ci(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes a run without a browser for a passed one, and the message names the package."""
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(page_fixtures, "CHROMIUM", "/nowhere/chromium")
    with pytest.raises(outcome, match="apt-get install chromium"), chromium():
        pass


def test_the_document_is_whole_small_and_asks_nobody_else() -> None:
    """The page is below 220 kB, has no reference to another host, and nothing is left to fill in."""
    page = render().decode()
    assert len(page.encode()) < 220_000
    assert "{{" not in page
    known = {"http://www.w3.org/2000/svg", *map(symptom_url, ["", *SECTIONS])}  # a name, and links to the docs
    assert set(re.findall(r"https?://[^\s'\"<>)]+", page)) == known
    assert page.lower().count("</script") == page.count("<script") == 2
    addresses = re.findall(r"(?:src|href|action)=\"([^\"]*)", page)
    assert [each for each in addresses if not re.match(r"#|data:|api/v1/|metrics$", each)] == []


def test_no_script_of_the_page_makes_markup_of_a_text() -> None:
    """Texts go in as texts: the ways to have them parsed are not used at all."""
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|DOMParser", render().decode()
    )


@pytest.mark.parametrize("kind,words", [("cause", CAUSES), ("phase", PHASES)])
def test_each_word_of_the_facts_has_its_own_colour(kind: str, words: tuple[str, ...]) -> None:
    """A new cause or phase without a colour, or with another's, fails here, in light and in dark."""
    style = render().decode()
    for word in words:
        assert len(re.findall(rf"--{kind}-{word}: #", style)) == 2, word
    for colours in (
        re.findall(rf"--{kind}-\w+: (#\w+)", style)[: len(words)],
        re.findall(rf"--{kind}-\w+: (#\w+)", style)[len(words) :],
    ):
        assert len(set(colours)) == len(words)


def test_a_compilation_appears_as_it_happens(opened: Opener) -> None:
    """Without a reload, newest first, marked as new, with its sentence, site and changes; figures follow."""
    with serving(rich(), events()) as server:
        page = opened(server)
        page.evaluate("window.sameDocument = true")
        expect(page.locator("#recent > li")).to_have_count(7)
        expect(page.locator("#recent > li.fresh")).to_have_count(0)
        change = Change("batch['image']", "shape", "float32[128,784]", "float32[96,784]")
        late = compilation(
            20, "late.step", cause="shape", reason="Argument batch['image'] shrank.", changes=(change,),
            call_site="/srv/app/late.py:7", library_site="brax/training/agents/ppo/train.py:512", cache="hit",
            phases={"trace": 0.04, "cache_load": 0.3},
        )  # fmt: skip
        server.events.append(late)
        server.snapshot = replace(server.snapshot, functions=(*server.snapshot.functions, function("late.step")))
        newest = page.locator("#recent > li").first
        expect(newest).to_have_attribute("data-sequence", "20")
        expect(newest).to_have_class(re.compile("fresh"))
        assert (
            "late. step 340 ms shape loaded from cache app/late.py:7 in brax/training/agents/ppo/train.py:512 Argument "
            "batch['image'] shrank. Argument Before Now batch['image'] float32[128,784] → float32[96,784]"
        ) in " ".join(newest.inner_text().split())
        expect(row(page, "late.step")).to_have_count(1)
        assert page.evaluate("window.sameDocument")


def test_an_update_moves_rows_and_rebuilds_none(opened: Opener) -> None:
    """Sort order, filter, open rows, scroll and selected text outlive an update; figures change in place."""
    with serving(rich()) as server:
        page = opened(server)
        page.locator("th[data-column=compilations] button").click()
        row(page, "maxtext.train.eval_step").locator(".toggle").click()
        page.evaluate("""() => {
            document.querySelectorAll('tbody').forEach(body => { body.mark = true; });
            document.getElementById('functions').scrollTop = 120;
            const name = document.querySelector('.fn[title="maxtext.train.eval_step"] .rest');
            getSelection().selectAllChildren(name);
        }""")
        grown = [replace(each, calls=(each.calls or 0) + 1) for each in server.snapshot.functions]
        server.snapshot = replace(server.snapshot, functions=tuple(grown), time=NOW + 2)
        expect(row(page, "maxtext.train.eval_step").locator(".calls")).to_have_text("413")
        assert page.evaluate("[...document.querySelectorAll('tbody')].every(body => body.mark)")
        assert page.evaluate("document.getElementById('functions').scrollTop") == 120
        assert page.evaluate("String(getSelection())") == "eval_step"
        expect(row(page, "maxtext.train.eval_step").locator(".detail")).to_have_count(1)
        numbers = [
            int(each.replace(",", "")) for each in page.locator("tbody:not(.apart) td.compilations").all_inner_texts()
        ]
        assert numbers == sorted(numbers, reverse=True)


def test_columns_sort_both_ways_and_eager_stays_apart(opened: Opener) -> None:
    """Every column sorts by its figure, says so to a screen reader, and leaves `<eager>` last."""
    with serving(rich()) as server:
        page = opened(server)
        by = {
            "name": lambda each: each.name.lower(),
            "calls": lambda each: -1 if each.calls is None else each.calls,
            "compilations": lambda each: each.compiled,
            "time": lambda each: sum(each.phase_seconds.values()),
        }
        named = {each.name: each for each in server.snapshot.functions}
        for column, figure in by.items():
            head = page.locator(f"th[data-column={column}]")
            seen = set()
            for _ in range(2):
                head.locator("button").click()
                direction = str(head.get_attribute("aria-sort"))
                seen.add(direction)
                names = order(page)
                assert names[-1] == EAGER
                figures = [figure(named[name]) for name in names[:-1]]
                assert figures == sorted(figures, reverse=direction == "descending")
            assert seen == {"ascending", "descending"}
        expect(page.locator("tbody.apart .fn")).to_have_attribute("title", EAGER)


def test_the_filter_finds_names_and_causes(opened: Opener) -> None:
    """The filter narrows the table by words, over updates too, and says when nothing matches."""
    with serving(rich()) as server:
        page = opened(server)
        page.fill("#filter", "new_function")
        assert order(page) == ["experiments.ablate.sweep.<locals>.<lambda>"]
        page.fill("#filter", "METRICS weak")
        assert order(page) == ["maxtext.metrics.accumulate"]
        page.fill("#filter", "train_step")
        server.snapshot = replace(server.snapshot, functions=(*server.snapshot.functions, function("other.train_step")))
        expect(page.locator("#functions-count")).to_have_text("2 of 26")
        page.fill("#filter", "nowhere")
        expect(page.locator("#functions-empty")).to_contain_text("No function matches")


def test_a_row_opens_by_keyboard(opened: Opener) -> None:
    with serving(rich()) as server:
        page = opened(server)
        shown = row(page, "maxtext.train.train_step")
        toggle = shown.locator(".toggle")
        toggle.focus()
        for expanded in ("true", "false"):
            page.keyboard.press("Enter")
            expect(toggle).to_have_attribute("aria-expanded", expanded)
            expect(shown.locator(".detail")).to_have_count(int(expanded == "true"))


def test_eager_compilations_are_hidden_until_asked_for(opened: Opener) -> None:
    """The number of findings is always shown, and one press shows them in their order."""
    with serving(rich(), events()) as server:
        page = opened(server)
        expect(page.locator("#recent > li[data-eager=true]")).to_have_count(0)
        expect(page.locator("#eager-count")).to_have_text("4 hidden")
        page.check("#eager")
        expect(page.locator("#recent > li[data-eager=true]")).to_have_count(4)
        sequences = page.locator("#recent > li").evaluate_all("nodes => nodes.map(node => +node.dataset.sequence)")
        assert sequences == sorted(sequences, reverse=True) == list(range(11, 0, -1))


def test_the_feed_is_bounded_and_says_what_it_left_out(opened: Opener) -> None:
    """Two hundred entries of many, and a flood of eager ones does not push out the others."""
    own = [compilation(number, f"m.f{number}") for number in range(1, 251)]
    flood = [compilation(number, "<add>", eager=True) for number in range(251, 700)]
    with serving(rich(), own + flood) as server:
        server.dropped = 31
        page = opened(server)
        expect(page.locator("#recent > li")).to_have_count(BOUND_ROWS)
        expect(page.locator("#recent > li").first).to_have_attribute("data-sequence", "250")
        expect(page.locator("#recent-more")).to_have_text(
            re.compile("newest 200 of 250 · 31 earlier events no longer in memory")
        )
        page.check("#eager")
        expect(page.locator("#recent > li").first).to_have_attribute("data-sequence", "699")
        expect(page.locator("#recent > li")).to_have_count(BOUND_ROWS)


def test_it_says_when_the_process_is_gone_and_goes_on_when_it_is_back(opened: Opener) -> None:
    """Banner with the time of last contact, values kept but dimmed; all clear again by itself."""
    with serving(rich(), events()) as server:
        page = opened(server, may_fail="net::ERR_")
        expect(page.locator("#gone")).to_be_hidden()
        server.stop()
        expect(page.locator("#gone")).to_be_visible()
        expect(page.locator("#gone")).to_contain_text(
            re.compile(r"The process is gone.*Last contact at \d\d:\d\d:\d\d")
        )
        expect(page.locator("#live-text")).to_contain_text("gone for")
        assert "gone" in page.title()
        expect(page.locator("main")).to_have_css("opacity", "0.6")
        assert row(page, "maxtext.train.train_step").locator(".calls").inner_text() == "18,204"
        server.start()
        expect(page.locator("#gone")).to_be_hidden()
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator("#recent > li")).to_have_count(7)
        expect(page.locator("#notice")).to_be_hidden()


def test_another_process_at_the_same_address_starts_afresh(opened: Opener) -> None:
    """A new pid: the old feed and curves go, the new ones come, and a notice says why."""
    with serving(rich(), events()) as server:
        page = opened(server)
        expect(page.locator("#recent > li")).to_have_count(7)
        server.events = [replace(compilation(1, "again.step"), pid=PID + 1)]
        server.snapshot = replace(on_cpu(), process=process(pid=PID + 1, started=NOW - 3, program="again.py"))
        expect(page.locator("#notice")).to_contain_text(f"pid {PID + 1}")
        expect(page.locator("#recent .fn")).to_have_text(["again.step"])
        expect(page.locator("figure.device")).to_have_count(1)
        page.click("#notice-close")
        expect(page.locator("#notice")).to_be_hidden()


def test_an_endpoint_that_answers_badly_is_not_called_gone(opened: Opener) -> None:
    with serving(rich()) as server:
        page = opened(server, may_fail="status of 500")
        server.broken = True
        expect(page.locator("#gone-title")).to_have_text("The process answers with an error (status 500)")
        server.broken = False
        expect(page.locator("#gone")).to_be_hidden()


def test_a_slow_endpoint_is_never_asked_twice_at_once(opened: Opener) -> None:
    with serving(rich(), events()) as server:
        server.delay = 1.5
        page = opened(server)
        page.wait_for_timeout(5_000)
        assert server.asked >= 3
        assert server.busiest == 1


def test_a_hidden_tab_asks_nothing(opened: Opener) -> None:
    hide = "window.away = false; Object.defineProperty(document, 'hidden', { get: () => window.away });"
    with serving(rich(), events()) as server:
        page = opened(server, script=hide)
        page.evaluate("window.away = true; document.dispatchEvent(new Event('visibilitychange'))")
        page.wait_for_timeout(500)
        before = server.asked
        page.wait_for_timeout(2_500)
        assert server.asked == before
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
        page.wait_for_timeout(600)
        assert server.asked > before


def test_a_compile_that_hangs_turns_amber(opened: Opener) -> None:
    """Open compilations are named with phase and a running clock; past a minute the tile warns."""
    fresh = OpenCompilation("slow.step", "compile", NOW - 5, "MainThread")
    with serving(replace(rich(), in_progress=(fresh,))) as server:
        page = opened(server)
        tile = page.locator("#tile-progress")
        expect(tile).to_have_attribute("data-state", "busy")
        expect(page.locator("#progress-list")).to_contain_text(re.compile(r"slow\.step.*compile.*[5-9] s"))
        server.snapshot = replace(server.snapshot, time=NOW + 70)
        expect(tile).to_have_attribute("data-state", "warn")
        expect(page.locator("#progress-list")).to_contain_text("1 min 1")
        server.snapshot = replace(server.snapshot, time=NOW + 75, in_progress=())
        expect(page.locator("#progress")).to_have_text("none")


def test_a_curve_stands_where_its_samples_are(opened: Opener) -> None:
    """Half of the highest sample is half as high; a sample that is missing leaves a gap, not a zero."""
    top = 8 * GIB
    history = tuple(
        (NOW - 100 + 10 * i, used, None) for i, used in enumerate((top, top // 2, None, top // 4, top // 4))
    )
    device = replace(gpu(0, 0.5), history=history, memory=memory("gpu:0", NOW - 60, top // 4, None))
    with serving(replace(rich(), devices=(device,))) as server:
        page = opened(server)
        lines = page.locator("path.line.used").evaluate_all("nodes => nodes.map(node => node.getAttribute('d'))")
        points = [[tuple(map(float, at)) for at in re.findall(r"([\d.]+) ([\d.]+)", line)] for line in lines]
        assert [len(run) for run in points] == [2, 2]
        floor = page.locator("svg.chart line.grid").first.evaluate("line => +line.getAttribute('y1')")
        high, half, quarter = (floor - run[i][1] for run, i in ((points[0], 0), (points[0], 1), (points[1], 0)))
        assert half / high == pytest.approx(0.5, abs=0.01)
        assert quarter / high == pytest.approx(0.25, abs=0.01)
        assert points[0][1][0] - points[0][0][0] == pytest.approx((points[1][0][0] - points[0][1][0]) / 2, rel=0.01)


def test_the_page_keeps_samples_that_the_process_has_let_go(opened: Opener) -> None:
    """The page's own samples stay in the curve, and a newer one is added without any history from the process."""
    with serving(on_cpu()) as server:
        page = opened(server)
        line = page.locator("path.line.used")
        before = line.get_attribute("d").count("L")  # type: ignore[union-attr]
        device = server.snapshot.devices[0]
        later = replace(device, history=(), memory=memory("cpu:0", NOW + 5, None, 99 * 2**20, live_arrays=300))
        server.snapshot = replace(server.snapshot, devices=(later,), time=NOW + 6)
        expect(page.locator("#memory")).to_have_text("99.0 MiB")
        assert line.get_attribute("d").count("L") == before + 1  # type: ignore[union-attr]


def test_a_chart_is_read_by_pointer_and_by_keys(opened: Opener) -> None:
    """The crosshair names time and bytes of the nearest sample, on every chart at once."""
    with serving(rich()) as server:
        page = opened(server)
        page.locator("figure[data-device='gpu:1'] svg").hover()
        expect(page.locator("#tip")).to_contain_text(re.compile(r"gpu:1.*in use.*GiB.*limit.*79\.6 GiB"))
        expect(page.locator(".cross line")).to_have_count(8)
        page.mouse.move(5, 5)
        expect(page.locator("#tip")).to_be_hidden()
        page.locator("figure[data-device='gpu:1'] svg").focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        newest = server.snapshot.devices[1].history[-1][1] or 0
        expect(page.locator("#tip")).to_contain_text(f"{newest / GIB:.1f} GiB")
        page.keyboard.press("Escape")
        expect(page.locator("#tip")).to_be_hidden()


def test_more_devices_than_fit_become_a_compact_grid(opened: Opener) -> None:
    devices = tuple(replace(gpu(index, 0.5), history=gpu(index, 0.5).history[:20]) for index in range(64))
    with serving(replace(rich(), devices=devices)) as server:
        page = opened(server)
        expect(page.locator("figure.device")).to_have_count(64)
        expect(page.locator("#charts")).to_have_attribute("data-size", "compact")
        expect(page.locator("figure.device path.line.used")).to_have_count(64)


def test_the_observer_shows_itself_when_something_is_wrong(opened: Opener) -> None:
    """Collapsed while all is well; open and marked when a capability is lost, and it can be closed again."""
    with serving(rich()) as server:
        page = opened(server)
        panel = page.locator("#observer")
        expect(panel).not_to_have_attribute("open", "")
        expect(page.locator("#observer-flag")).to_be_hidden()
        lost = ObserverState(
            installed=True,
            capabilities={"miss_frame": False},
            internal_errors={"sources.memory": 3},
            dropped={"functions": 12},
            notes=("Listeners were put back.",),
        )
        server.snapshot = replace(server.snapshot, observer=lost)
        expect(panel).to_have_attribute("open", "")
        expect(page.locator("#observer-flag")).to_have_text("⚠ 4 remarks")
        for part in (
            "miss frame",
            "3 times in sources.memory",
            "Dropped 12 to stay within limits: functions",
            "Listeners were put back.",
        ):
            expect(panel.locator(".remarks")).to_contain_text(part)
        panel.locator("summary").click()
        server.snapshot = replace(server.snapshot, time=NOW + 4, observer=replace(lost, collect_seconds=0.5))
        page.wait_for_timeout(2_500)
        expect(panel).not_to_have_attribute("open", "")
