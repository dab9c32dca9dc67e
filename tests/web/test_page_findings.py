"""The live page says why: findings, what differs between two calls, and what the persistent cache did."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers.page_facts import (
    FINDINGS,
    NOW,
    TOO_FAST,
    compilation,
    empty,
    events,
    finding,
    function,
    lookup,
    lookups,
    on_cpu,
    rich,
)
from helpers.page_fixtures import Opener, chrome, in_seconds, opened, row, serving, text
from playwright.sync_api import Page, expect

from jaxobs.base.symptoms import symptom_url
from jaxobs.facts.cache import CacheState
from jaxobs.facts.compilations import EAGER, Change
from jaxobs.facts.events import Event

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
        told = next(each for each in FINDINGS if each.finding == "unbounded_shapes")
        shown = text(page, card(page, told.finding))
        for part in (told.summary, told.advice, "17 compilations", told.function, told.subject, "since "):
            assert part.replace("`", "") in shown
        assert in_seconds(shown.partition("compilations · ")[2].partition(" lost")[0]) == pytest.approx(told.seconds)
        evidence = page.locator(card(page, told.finding)).locator(".evidence")
        expect(evidence).to_be_hidden()
        page.locator(card(page, told.finding)).locator("summary").press("Enter")
        expect(evidence).to_contain_text("bfloat16[8,448,128] -> bfloat16[8,512,128]")
        page.get_by_role("button", name="show 1 more").click()
        assert cards.evaluate_all("all => all.map(each => each.dataset.kind)") == kinds
        grown = tuple(replace(each, count=each.count + 1, seconds=each.seconds + 100) for each in FINDINGS[1:2])
        server.snapshot = replace(server.snapshot, findings=grown)
        expect(cards).to_have_count(1)
        expect(cards).to_contain_text(re.compile("18 compilations · 2 min 10 s lost"))
        expect(evidence).to_be_visible()


def test_without_findings_there_is_no_box(opened: Opener) -> None:
    """Nothing to find: no empty panel, and a quiet word beside the compilations, once there are any."""
    with serving(on_cpu()) as server:
        page = opened(server)
        expect(page.locator("#findings")).to_be_hidden()
        expect(page.locator("#compilations-sub")).to_contain_text("no findings")
        server.snapshot = replace(server.snapshot, findings=FINDINGS[:1])
        expect(page.locator("#findings")).to_be_visible()
        expect(page.locator("#findings-status")).to_contain_text("1 finding. `train_step` compiled twice")
        expect(page.locator("#compilations-sub")).not_to_contain_text("no findings")
        server.snapshot = empty()
        expect(page.locator("#findings")).to_be_hidden()
        expect(page.locator("#compilations-sub")).to_have_text("no compilation yet")


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


def test_a_row_tells_the_program_and_what_the_cache_did(opened: Opener) -> None:
    """FLOPs, memory by section, why it was not stored, what an earlier process had, and the call site to copy."""
    with serving(rich(), all_events()) as server:
        page = opened(server)
        newest = page.locator("#recent > li[data-sequence='11']")
        expect(newest.locator(".missed")).to_contain_text("Cached before, and missed")
        assert newest.locator(".missed .badge").all_inner_texts() == ["flags", "options"]
        expect(newest.locator(".missed")).to_contain_text("--xla_gpu_autotune_level=2 now")
        expect(newest.locator(".more-facts summary")).to_have_text("1.3 PFLOP · 57.0 GiB")
        newest.locator(".more-facts summary").click()
        for part in (
            "57.0 GiB a device arguments 26.0 GiB, outputs 25.0 GiB, temporaries 31.0 GiB",
            "that reuse arguments −25.0 GiB, code 7.0 MiB",
            "1.3 PFLOP in one run",
            "jit_train_step-",
        ):
            expect(newest.locator(".more-facts")).to_contain_text(part)
        unsaved = page.locator("#recent > li[data-sequence='8']")
        expect(unsaved.locator(".more-facts summary")).to_have_text("not stored: too fast")
        unsaved.locator(".more-facts summary").click()
        expect(unsaved.locator(".more-facts")).to_contain_text(TOO_FAST.replace("`", ""))
        loaded = page.locator("#recent > li[data-sequence='1']")
        loaded.locator(".more-facts summary").click()
        expect(loaded.locator(".more-facts")).to_contain_text("read in 52 ms, saved 11.8 s")
        expect(page.locator("#recent .missed")).to_have_count(1)


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


def test_the_cache_has_its_panel(opened: Opener) -> None:
    """The panel has the cache's place, size, growth, hits, misses and refusals; nothing if the cache is off."""
    with serving(rich(), all_events()) as server:
        page = opened(server)
        panel = page.locator("#cache-panel")
        assert text(page, "#cache-directory") == "/var/cache/jax"
        facts = text(page, "#cache-facts")
        for part in ("Entries 212", "Size 1.2 GiB", "Growth +23.5 MiB", "11 hits, 109 misses", "Saved 6 min 52.3 s"):
            assert part in facts
        for function in server.snapshot.functions:
            line = panel.locator("tbody tr").filter(has=page.locator(f'.fn[title="{function.name}"]'))
            if not function.cache.get("hit") and not function.cache.get("miss"):
                expect(line).to_have_count(0)
                continue
            wanted = [
                f"{function.cache[result]:,}" if function.cache.get(result) else "—" for result in ("hit", "miss")
            ]
            assert line.locator("td").all_inner_texts()[:2] == wanted
        expect(panel.locator("tbody .fn").first).to_have_attribute(
            "title", "experiments.ablate.sweep.<locals>.<lambda>"
        )
        unsaved = text(page, "#cache-unsaved")
        assert "31 too fast" in unsaved and TOO_FAST.replace("`", "") in unsaved and "2 callbacks" in unsaved
        panel.get_by_role("link", name="#8").click()
        expect(page.locator("#recent > li[data-sequence='8']")).to_be_focused()
        in_a_bucket = CacheState(enabled=True, directory="gs://bucket/cache", saved_seconds=0.25)
        server.snapshot = replace(server.snapshot, cache=in_a_bucket)
        expect(page.locator("#cache-facts")).to_contain_text("not visible from here")
        assert "Saved 250 ms" in text(page, "#cache-facts") and "Entries" not in text(page, "#cache-facts")
        server.snapshot = replace(server.snapshot, cache=CacheState(enabled=False, directory="/var/cache/jax"))
        expect(panel).to_be_hidden()


def test_the_table_tells_slow_calls_and_the_latest_program(opened: Opener) -> None:
    """Calls that lost the fast path, by cause when pointed at or unfolded; FLOPs and memory of the newest program."""
    newer = compilation(12, "maxtext.train.eval_step", flops=950.0, memory={"argument": 2048})
    with serving(rich(), all_events()) as server:
        page = opened(server)
        decode = row(page, "maxtext.decode.<locals>.generate_step")
        expect(decode.locator(".calls")).to_have_text("96,233445 slow")
        assert "arguments 412\ncache full 33" in str(decode.locator(".calls").get_attribute("title"))
        decode.locator(".toggle").click()
        expect(decode.locator(".detail")).to_contain_text("445 calls fell out of the fast path and compiled nothing")
        expect(decode.locator(".program")).to_have_text("—")
        expect(row(page, "maxtext.train.train_step").locator(".program")).to_have_text("1.3 PFLOP57.0 GiB")
        evaluation = row(page, "maxtext.train.eval_step")
        expect(evaluation.locator(".program")).to_have_text("41.0 TFLOP35.0 GiB")
        server.events.append(newer)
        expect(evaluation.locator(".program")).to_have_text("950 FLOP2.0 KiB")
        page.locator("th[data-column=program] button").click()
        expect(page.locator("#table .fn").first).to_have_attribute("title", "maxtext.train.train_step")
        expect(row(page, EAGER).locator(".program")).to_have_text("—")


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


def test_the_verdict_comes_first(opened: Opener) -> None:
    """The worst finding with its cost, line and cure above all else; or that there is nothing to mend."""
    worst = finding("unbounded_shapes", "train.step", summary="`x` varies.", advice="Pad `x`.", seconds=49.6)
    worst = replace(worst, where="/home/me/app/train.py:41", ended=None)
    nothing = replace(rich(), findings=())
    with serving(replace(nothing, findings=(worst,))) as server:
        page = opened(server)
        verdict = page.locator("#verdict")
        assert verdict.get_attribute("data-verdict") == "mend"
        assert text(page, "#verdict-text") == "x varies."
        assert text(page, "#verdict-do") == "DoPad x."
        assert "49.6 s lost" in text(page, "#verdict-cost") and "app/train.py:41" in text(page, "#verdict-cost")
        assert page.evaluate("document.querySelector('main').firstElementChild.id") == "verdict"
        for place in ("#verdict-cost", "#findings-list"):
            link = page.locator(f"{place} a.symptom")
            expect(link).to_have_text("By symptom: It compiles all the time")
            expect(link).to_have_attribute("href", symptom_url("unbounded_shapes"))
        server.snapshot = nothing
        expect(verdict).to_have_attribute("data-verdict", "fine")
        expect(page.locator("#verdict-text")).to_contain_text("Nothing to mend")
        expect(page.locator("#verdict-do")).to_be_hidden()
