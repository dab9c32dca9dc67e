"""The live page says why: findings, what differs between two calls, and what the persistent cache did."""

import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.page_facts import FINDINGS, NOW, compilation, events, finding, function, lookup, lookups, on_cpu, rich
from helpers.page_fixtures import Opener, chrome, opened, row, serving
from helpers.page_input_facts import WALL, WELL
from helpers.page_memory_facts import capture
from helpers.page_request_facts import PREDICT
from playwright.sync_api import Page, expect

from jaxobs.base.symptoms import symptom_url
from jaxobs.facts.compilations import Change
from jaxobs.facts.events import Event
from jaxobs.facts.requests import RequestCompilation

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

MOST_NODES = 25_000


def all_events() -> list[Event]:
    """The feed and the answers of the cache."""
    return [*lookups(), *events()]


def card(page: Page, kind: str) -> str:
    """The selector of a finding's card."""
    return f"#findings-list > li[data-kind='{kind}']"


def test_findings_come_first_and_the_dearest_of_them_at_the_top(opened: Opener) -> None:
    """Before all figures: kind, function, what, what to do, how often, how long, since when; others on demand."""
    with serving(rich(), all_events()) as server:
        page = opened(server)
        shown = page.locator("main > :not([hidden])")
        assert [shown.nth(place).get_attribute("id") for place in (0, 1)] == ["verdict", "findings"]
        kinds = [each.finding for each in sorted(FINDINGS, key=lambda each: -each.seconds)]
        cards = page.locator("#findings-list > li")
        assert cards.evaluate_all("all => all.map(each => each.dataset.kind)") == kinds[:3]
        told = FINDINGS[1]
        evidence = page.locator(card(page, told.finding)).locator(".evidence")
        expect(evidence).to_be_hidden()
        # The verdict above says what the first one says.
        expect(cards.nth(0).locator(".summary, .advice").locator("visible=true")).to_have_count(0)
        expect(cards.nth(1).locator(".summary, .advice").locator("visible=true")).to_have_count(2)
        page.locator(card(page, told.finding)).locator("summary").press("Enter")
        expect(evidence).to_contain_text("bfloat16[8,448,128] -> bfloat16[8,512,128]")
        page.get_by_role("button", name="show 1 more").click()
        assert cards.evaluate_all("all => all.map(each => each.dataset.kind)") == kinds
        grown = tuple(replace(each, count=each.count + 1, seconds=each.seconds + 100) for each in FINDINGS[1:2])
        server.snapshot = replace(server.snapshot, findings=grown)
        expect(cards).to_have_count(1)
        expect(cards).to_contain_text(re.compile("18 compilations · 2 min 10 s lost"))
        expect(evidence).to_be_visible()


def test_a_finding_is_shared_as_a_picture_and_as_an_address(opened: Opener, tmp_path: Path) -> None:
    """The picture has the size that sites show next to a link; the address leads to the finding, even among many."""
    told = min(FINDINGS, key=lambda each: each.seconds)
    with serving(rich(), all_events()) as server:
        page = opened(server)
        page.evaluate("id => { location.hash = `finding-${id}`; }", told.id)
        shown = page.locator(card(page, told.finding))
        expect(shown).to_be_focused()
        shown.locator("summary").press("Enter")
        expect(shown.get_by_role("link", name="link")).to_have_attribute("href", f"#finding-{told.id}")
        with page.expect_download() as saved:
            shown.get_by_role("button", name="save as a picture").click()
        assert saved.value.suggested_filename == f"jaxobs-{told.finding}.png"
        saved.value.save_as(tmp_path / "card.png")
        picture = (tmp_path / "card.png").read_bytes()
        assert picture[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", picture[16:24]) == (1200, 630)


DRAWN_TEXTS = """
    window.drawn = [];
    const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        drawn.push(text);
        fill.call(this, text, ...rest);
    };
"""
FULL = {"sizes": list(range(31, 399)), "buckets": [64, 448]}
ADVICE = "Pad it to multiples of 64. " + "That leaves at most seven programs with the sizes seen. " * 9


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("/home/ada/jobs/long/train.py:24", "long/train.py:24"),
        ("/home/ada/train.py:24", "train.py:24"),
        ("/root/train.py:24", "train.py:24"),
        ("/srv/train.py:24", "srv/train.py:24"),
        ("tokens dimension 1", "tokens dimension 1"),
    ],
)
def test_the_picture_of_a_finding_has_whole_sentences_and_no_home(opened: Opener, where: str, shown: str) -> None:
    found = finding(
        "unbounded_shapes",
        "m.f",
        data=FULL,
        advice=ADVICE,
        where=where,
        seconds=9,
        count=42,
        sequences=(1, 2),
        summary=f"`x` recompiles (`{where}`).",
    )
    with serving(replace(rich(), findings=(found,))) as server:
        page = opened(server, script=DRAWN_TEXTS)
        page.locator("#findings-list summary").press("Enter")
        with page.expect_download():
            page.get_by_role("button", name="save as a picture").click()
        drawn = page.evaluate("drawn")
    told = " ".join(drawn)
    assert shown in drawn and f"x recompiles ({shown})." in told and "ada" not in told
    assert drawn[1] == "f recompiled 42 times, 9.0 s lost"
    assert "…" not in told and "Pad it to multiples of 64. That leaves" in told
    assert told.count("That leaves") == told.count("sizes seen.") < 9
    assert {"64", "448"} <= {*drawn}


def test_a_finding_leads_to_the_trace_of_its_time(opened: Opener) -> None:
    """The latest profile that was captured while it lasted; none from before, and no capture of memory."""
    told = FINDINGS[1]
    captures = [
        capture(901, time=told.since - 9.0, name="profile", path="/captures/profile-early"),
        capture(902, time=told.since + 1.0, name="profile", path="/captures/profile-during"),
        capture(903, time=told.since + 2.0, name="memory", path="/captures/memory-during"),
    ]
    with serving(rich(), [*all_events(), *captures]) as server:
        page = opened(server)
        shown = page.locator(card(page, told.finding))
        shown.locator("summary").press("Enter")
        expect(shown.locator(".evidence")).to_contain_text("A trace of that time: captures/profile-during")


def test_the_word_about_findings_follows_them(opened: Opener) -> None:
    with serving(on_cpu()) as server:
        page = opened(server)
        expect(page.locator("#compilations-sub")).to_contain_text("no findings")
        server.snapshot = replace(server.snapshot, findings=FINDINGS[:1])
        expect(page.locator("#findings-status")).to_contain_text("1 finding. `train_step` compiled twice")
        expect(page.locator("#compilations-sub")).not_to_contain_text("no findings")


NO_PICTURE: tuple[dict[str, object], ...] = ({}, {"sizes": []}, {"sizes": [3]}, {"sizes": "many", "buckets": 7})


def test_the_sizes_of_a_dimension_are_drawn(opened: Opener) -> None:
    """Each size has its bar, each bucket its line, and the padding is in per cent; spoken as well."""
    sizes = {"sizes": [10, 20, 30, 31, 40], "buckets": [20, 40], "padding": 0.125}
    # A wide range is drawn by powers of two, so that the small sizes do not fall into one bar.
    wide = {"sizes": [2**power for power in range(11)], "buckets": [1024], "padding": 0.004}
    told = tuple(
        finding("unbounded_shapes", f"m.f{n}", data=data, seconds=9 - n)
        for n, data in enumerate((sizes, wide, *NO_PICTURE))
    )
    with serving(replace(rich(), findings=told)) as server:
        page = opened(server)
        page.get_by_role("button", name="show 3 more").click()
        expect(page.locator("#findings-list > li")).to_have_count(6)
        expect(page.locator(".sizes")).to_have_count(2)
        spoken = "5 sizes, 10 to 40; 2 buckets: 20, 40; 13 % padding"
        expect(page.get_by_role("img", name=spoken)).to_have_count(1)
        picture = page.locator(".sizes").first
        assert re.sub(r"\s+", " ", picture.inner_text()).endswith(spoken.replace(";", ""))
        assert picture.locator(".tick").evaluate_all("all => all.map(each => each.textContent)") == ["40", "20"]
        ends = picture.locator("rect.seen").evaluate_all(
            "all => all.map(each => each.x.baseVal.value + each.width.baseVal.value)"
        )
        buckets = picture.locator("line.bucket").evaluate_all("all => all.map(each => each.x1.baseVal.value)")
        assert len(ends) == 5
        assert [ends[4], ends[1]] == pytest.approx(buckets, abs=0.2)
        assert (ends[2] - ends[1]) / (ends[4] - ends[1]) == pytest.approx(0.5, abs=0.01)
        picture = page.locator(".sizes").nth(1)
        expect(picture).to_contain_text("one bucket: 1,024")
        expect(picture).to_contain_text("<1 % padding")
        expect(picture.locator("rect.seen")).to_have_count(11)


def test_what_to_do_is_said_once_for_a_function(opened: Opener) -> None:
    """With its newest compilation; each other one says what changed, and the rest when pointed at."""
    pad = "Pad dimension 0 of `x` to one size ({} fits both calls)."
    reasons = [f"`m.{name}`: `x` f32[{n}] -> f32[{n + 1}]. {pad.format(n)}" for name in "fg" for n in range(3)]
    made = [compilation(n, each[1:4], cause="shape", reason=each) for n, each in enumerate(reasons, 1)]
    cold = replace(
        PREDICT.latest_cold[0],
        compiled=(RequestCompilation(function="m.f", cause="shape", reason=reasons[0], cache="miss", seconds=0.1),),
    )
    known = (function("m.f", shape=3, last_reason=reasons[2]), function("m.g", shape=3, last_reason=reasons[5]))
    facts = replace(rich(), findings=(), functions=known, routes=(replace(PREDICT, latest_cold=(cold,)),))
    with serving(facts, made[:5]) as server:
        page = opened(server)
        told = page.locator("main").get_by_text("fits both calls").locator("visible=true")
        expect(page.locator("#recent > li")).to_have_count(5)
        expect(told).to_have_count(2)
        assert [text for text in page.locator("#recent .reason").all_inner_texts() if "fits" in text] == [
            "x f32[1] -> f32[2]. Pad dimension 0 of x to one size (1 fits both calls).",
            "x f32[2] -> f32[3]. Pad dimension 0 of x to one size (2 fits both calls).",
        ]
        server.events.append(made[5])
        expect(page.locator("#recent > li")).to_have_count(6)
        expect(told).to_have_count(2)
        expect(page.locator("#recent .reason").first).to_contain_text("(2 fits both calls)")
        expect(page.locator("#recent .reason").last).to_have_attribute("title", re.compile("0 fits both calls"))
        cold_one = page.locator("#requests-cold-list .why").first  # what changed stands with the compilation
        expect(cold_one).to_have_text(re.compile(r"^shape\s*m\.f\s*100 ms$"))
        expect(cold_one).to_have_attribute("title", reasons[0])
        page.locator("#eager").check()  # drawn again
        expect(told).to_have_count(2)


def test_a_finding_leads_to_its_compilations_and_back(opened: Opener) -> None:
    """Links focus the row, an eager one too; what is no longer kept is no link; the row names its findings."""
    with serving(rich(), all_events()) as server:
        page = opened(server)
        page.locator(card(page, "unbounded_shapes")).locator("summary").click()
        links = page.locator(card(page, "unbounded_shapes")).locator(".links")
        assert links.locator("a").all_inner_texts() == ["#3", "#10"]
        assert links.locator("span.num").all_inner_texts() == ["#4711"]
        links.get_by_text("#10").click()
        target = page.locator("#recent > li[data-sequence='10']")
        expect(target).to_be_focused()
        expect(target).to_be_in_viewport()
        expect(page.locator("#eager")).not_to_be_checked()
        links.get_by_text("#3", exact=True).click()
        expect(page.locator("#recent > li[data-sequence='3']")).to_be_focused()
        expect(page.locator("#eager")).to_be_checked()
        page.locator("#recent > li[data-sequence='6']").get_by_role("button", name="recompile storm").click()
        expect(page.locator(card(page, "recompile_storm"))).to_be_focused()
        server.snapshot = replace(server.snapshot, findings=())
        expect(page.locator("#recent button.part")).to_have_count(0)


MANY = "[" + ",".join(map(str, range(900))) + "]"

DIFFERENCES = (
    ("float32[32,128]", "float32[17,128]", "32", "17"),
    ("float32[32,128]", "bfloat16[32,64]", "float32|128", "bfloat16|64"),
    ("float32[]", "float32[] weak", "", " weak"),
    ("P('data', 'model')", "P('data', None)", "'model'", "None"),
    ("None", "int32[4]", "None", "int32[4]"),
    ("{'a': 1, 'b': 2.5}", "{'a': 1, 'c': 2.5}", "'b'", "'c'"),
    ("x" * 300 + " 1", "x" * 300 + " 2", "1", "2"),
    (MANY, MANY[::-1], MANY, MANY[::-1]),
    ("same", "same", "", ""),
)


def test_only_what_differs_is_marked(opened: Opener) -> None:
    """Changed tokens of both texts are marked; everything else is as it was given, and the words stay whole."""
    changes = tuple(Change(f"x[{n}]", "shape", *each[:2]) for n, each in enumerate(DIFFERENCES))
    with serving(rich(), [compilation(1, cause="shape", changes=changes)]) as server:
        page = opened(server)
        page.locator(".rest-changes summary").click()
        rows = page.locator("#recent .changes tbody tr")
        expect(rows).to_have_count(len(DIFFERENCES))
        for n, (before, after, gone, came) in enumerate(DIFFERENCES):
            for kind, whole, marks in (("del", before, gone), ("ins", after, came)):
                cell = rows.nth(n).locator(kind)
                assert cell.text_content() == whole
                assert "|".join(cell.locator("mark").all_text_contents()) == marks, (n, kind)
            assert rows.nth(n).locator("th").text_content() == f"x[{n}]"


@pytest.mark.parametrize("clipboard", ["granted", "missing"])
def test_a_call_site_can_be_copied(opened: Opener, clipboard: str) -> None:
    """As a whole, by a button, also where the page is not served from localhost and has no clipboard."""
    without = (
        "Object.defineProperty(navigator, 'clipboard', { get: () => undefined });" if clipboard == "missing" else ""
    )
    with serving(rich(), all_events()) as server:
        page = opened(server, script=without, permissions=["clipboard-read", "clipboard-write"])
        page.evaluate("document.addEventListener('copy', () => { window.copied = String(getSelection()); })")
        page.get_by_role("button", name="Copy call site /srv/runs/maxtext/train.py:214").click()
        expect(page.locator("#said")).to_have_text("Copied /srv/runs/maxtext/train.py:214")
        read = "window.copied" if clipboard == "missing" else "navigator.clipboard.readText()"
        assert page.evaluate(read) == "/srv/runs/maxtext/train.py:214"
        expect(page.locator("textarea")).to_have_count(0)


def test_the_cache_leads_to_what_it_did_not_store(opened: Opener) -> None:
    with serving(rich(), all_events()) as server:
        page = opened(server)
        page.locator("#cache-panel").get_by_role("link", name="#8").click()
        expect(page.locator("#recent > li[data-sequence='8']")).to_be_focused()


def test_the_table_tells_slow_calls_and_the_latest_program(opened: Opener) -> None:
    """Calls that lost the fast path, by cause when pointed at; FLOPs and memory of the newest program, in order."""
    newer = compilation(12, "maxtext.train.eval_step", flops=950.0, memory={"argument": 2048})
    with serving(rich(), all_events()) as server:
        page = opened(server)
        calls = row(page, "maxtext.decode.<locals>.generate_step").locator(".calls")
        assert "arguments 412\ncache full 33" in str(calls.get_attribute("title"))
        server.events.append(newer)
        expect(row(page, "maxtext.train.eval_step").locator(".program")).to_have_text("950 FLOP2.0 KiB")
        page.locator("th[data-column=program] button").click()
        expect(page.locator("#table .fn").first).to_have_attribute("title", "maxtext.train.train_step")


WATCH = """() => {
    window.touched = [];
    const note = record => window.touched.push(record.target.nodeName);
    const watching = new MutationObserver(records => records.forEach(note));
    for (const part of ['findings', 'table', 'recent', 'cache-panel'])
        watching.observe(document.getElementById(part), { subtree: true, childList: true, characterData: true });
}"""


def test_thousands_of_events_stay_light(opened: Opener) -> None:
    """The document is bounded, whatever the process tells, and an update without news touches no row."""
    many = tuple(Change(f"state[{n}]", "shape", "float32[32,128]", "float32[17,128]") for n in range(20))
    made: list[Event] = []
    for number in range(1, 2_001, 2):
        each = compilation(number + 1, f"m.f{number % 200}", cause="shape", changes=many, eager=number % 4 == 1)
        made += [lookup(each, sequence=number, reason="Other flags.", differs=("flags",)), each]
    found = tuple(
        finding("unbounded_shapes", f"m.f{n}", sequences=tuple(range(1_900, 1_932)), data=FINDINGS[1].data, seconds=n)
        for n in range(40)
    )
    busy = tuple(function(f"m.f{n}", calls=n, fastpath_misses={"effects": n}) for n in range(200))
    with serving(replace(rich(), functions=busy, findings=found), made) as server:
        page = opened(server)
        expect(page.locator("#recent > li")).to_have_count(200)
        expect(page.locator("#findings-list > li")).to_have_count(3)
        page.check("#eager")
        assert page.evaluate("document.querySelectorAll('main *').length") < MOST_NODES
        page.evaluate(WATCH)
        asked = server.asked
        page.wait_for_timeout(2_600)
        assert server.asked >= asked + 4
        assert page.evaluate("window.touched") == []
        server.snapshot = replace(server.snapshot, time=NOW + 9)
        server.events.append(compilation(5_000, "late.step"))
        expect(page.locator("#recent > li").first).to_have_attribute("data-sequence", "5000")


def test_the_verdict_follows_the_findings(opened: Opener) -> None:
    """The worst finding above all else, with the symptom that leads to it; or that there is nothing to fix."""
    with serving(replace(rich(), findings=FINDINGS[1:2])) as server:
        page = opened(server)
        assert page.locator("#verdict").get_attribute("data-verdict") == "fix"
        assert page.evaluate("document.querySelector('main').firstElementChild.id") == "verdict"
        for place in ("#verdict-cost", "#findings-list"):
            expect(page.locator(f"{place} a.symptom")).to_have_attribute("href", symptom_url("unbounded_shapes"))
        server.snapshot = replace(rich(), findings=(), wall=WELL)
        expect(page.locator("#verdict")).to_have_attribute("data-verdict", "ok")
        expect(page.locator("#verdict-do")).to_be_hidden()
        little = replace(FINDINGS[1], severity="info")
        server.snapshot = replace(rich(), findings=(little,), wall=WALL)
        expect(page.locator("#verdict")).to_have_attribute("data-verdict", "watch")
        expect(page.locator("#verdict-text")).to_contain_text("67 % of the time since the first step went into steps.")
