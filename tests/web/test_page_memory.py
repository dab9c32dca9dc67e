"""The live page shows where memory went: the account of each device, what holds it, the report of a call that died."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers.contrast import CONTRAST
from helpers.page_facts import GIB, NOW, PID, empty, events, function, process, rich
from helpers.page_fixtures import Opener, chrome, opened, row, serving, text
from helpers.page_memory_facts import (
    CODE,
    FINDING_OVER,
    LEAK,
    accelerator,
    capture,
    died,
    full,
    full_gpu,
    group,
    groups,
    many,
    out_of_memory,
    samples,
    without_allocator,
)
from playwright.sync_api import Page, expect

from jaxobs.facts.accelerators import AcceleratorProcess
from jaxobs.facts.functions import ProgramState
from jaxobs.facts.memory import DeviceMemory, headroom
from jaxobs.facts.out_of_memory import MemoryBuffer, OomCause
from jaxobs.facts.snapshot import Snapshot

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\'"`&amp;'


def shown(size: float) -> str:
    """Bytes as the page writes them."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    unit = 0
    while size >= 1023.5 and unit < 4:
        size, unit = size / 1024, unit + 1
    return f"{round(size) if unit == 0 or size >= 99.95 else f'{size:.1f}'} {units[unit]}"


def bar(page: Page, device: str) -> dict[str, float]:
    """Widths of the parts of a device's bar in percent, by name."""
    pieces = page.locator(f"#accounts li[data-device='{device}'] .bar i")
    found: list[tuple[str, float]] = pieces.evaluate_all(
        "all => all.map(i => [i.dataset.part, parseFloat(i.style.width)])"
    )
    return (
        dict(found)
        if len(dict(found)) == len(found)
        else {f"{name} {n}": width for n, (name, width) in enumerate(found)}
    )


def figures(page: Page) -> dict[str, str]:
    """The figures of the device that is chosen."""
    return dict(
        zip(
            page.locator("#account-facts dt").all_inner_texts(),
            page.locator("#account-facts dd").all_inner_texts(),
            strict=True,
        )
    )


def test_the_parts_of_each_device_add_up_to_what_is_in_use(opened: Opener) -> None:
    """Each device has a bar up to its limit: groups, other arrays, code and the rest are its bytes in use."""
    with serving(full()) as server:
        page = opened(server)
        for device in server.snapshot.devices:
            memory = device.memory
            assert memory and memory.in_use_bytes and memory.limit_bytes
            widths = bar(page, device.device)
            assert sum(widths.values()) == pytest.approx(100 * memory.in_use_bytes / memory.limit_bytes, rel=1e-4)
            assert widths["code"] == pytest.approx(100 * CODE / memory.limit_bytes, rel=1e-4)
            gap = device.account.gap_bytes if device.account else 0
            assert widths["temporaries and rest"] == pytest.approx(100 * gap / memory.limit_bytes, rel=1e-4)
            button = page.locator(f"#accounts li[data-device='{device.device}'] button")
            ratio = round(100 * memory.in_use_bytes / memory.limit_bytes)
            whole = shown(memory.limit_bytes)
            name = rf"^{device.device} {shown(memory.in_use_bytes)} {ratio} % of {whole} in use(, the fullest)?\."
            expect(button).to_have_accessible_name(re.compile(name))
        first = server.snapshot.devices[0].memory
        drawn = page.locator("#accounts li[data-device='gpu:0'] .bar").bounding_box()
        used = page.locator("#accounts li[data-device='gpu:0'] .bar i").evaluate_all(
            "all => all.reduce((width, i) => width + i.getBoundingClientRect().width, 0)"
        )
        assert drawn and first and first.in_use_bytes and first.limit_bytes
        assert used / drawn["width"] == pytest.approx(first.in_use_bytes / first.limit_bytes, abs=0.02)


def test_one_device_is_read_in_figures_by_mouse_and_keys(opened: Opener) -> None:
    """The fullest at first, then the one that is chosen: every part, the sum, and what the allocator tells beside."""
    with serving(full()) as server:
        page = opened(server)
        expect(page.locator("#account-facts h3")).to_have_text(re.compile("gpu:0 NVIDIA H100"))
        assert "35.6 GiB left on gpu:0, the fullest" in text(page, "#memory-told")
        assert "124 compiled programs loaded" in text(page, "#memory-told")
        told = figures(page)
        assert told["float32[64,4096]"] == "7.2 GiB"
        button = page.locator("#accounts li[data-device='gpu:3'] button")
        button.focus()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#accounts button[aria-pressed=true]")).to_have_count(1)
        device = server.snapshot.devices[3]
        memory, account = device.memory, device.account
        assert memory and account
        told = figures(page)
        assert "float32[64,4096]" not in told
        assert told["code"] == shown(account.code_bytes)
        assert told["temporaries and rest"] == shown(account.gap_bytes)
        assert told["in use, the sum"] == shown(account.in_use_bytes)
        assert told["free"] == shown(memory.limit_bytes - account.in_use_bytes)  # type: ignore[operator]
        assert told["live arrays"] == f"{shown(account.array_bytes)} in 147"
        for name, value in (
            ("limit", memory.limit_bytes),
            ("peak", memory.peak_bytes),
            ("most in the last minute", memory.high_water_bytes),
            ("largest free block", memory.largest_free_block_bytes),
            ("arrays in pinned_host", 11 * GIB),
        ):
            assert told[name] == shown(value or 0)
        assert "reserved" not in told


def test_what_lies_outside_of_the_allocators_count_is_negative_and_said(opened: Opener) -> None:
    """A gap below zero is neither hidden nor drawn as a part."""
    device = full_gpu(0, groups())
    assert device.memory and device.memory.live_array_bytes
    memory = replace(device.memory, in_use_bytes=device.memory.live_array_bytes + CODE - GIB)
    with serving(replace(full(), devices=(replace(device, memory=memory, account=None),))) as server:
        page = opened(server)
        assert "temporaries and rest" not in bar(page, "gpu:0")
        assert figures(page)["temporaries and rest"] == "−1.0 GiB"
        expect(page.locator("#account-facts .note")).to_contain_text("The allocator does not count some arrays")


def heights(page: Page, device: str, kind: str) -> dict[float, float]:
    """Upper edge of an area by x, in pixels over the floor."""
    path = page.locator(f"figure[data-device='{device}'] path.area.{kind}").first.get_attribute("d") or ""
    points = [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]
    floor = points[-1][1]
    return {x: floor - y for x, y in points[:-2]}


def test_the_stack_over_time_reaches_up_to_what_is_in_use(opened: Opener) -> None:
    """Arrays, code over them, the rest up to the line in use; code from the events, where the history has none."""
    base = full()
    device = replace(full_gpu(0, groups()), history=())
    memory = device.memory
    assert memory and memory.in_use_bytes and memory.live_array_bytes
    told = [
        replace(memory, time=NOW - 100 + 10 * step, sequence=step + 1, pid=PID, in_use_bytes=40 * GIB,
                live_array_bytes=(10 + 2 * step) * GIB, code_bytes=5 * GIB)
        for step in range(5)
    ]  # fmt: skip
    history = tuple((each.time + 1, 40 * GIB, each.live_array_bytes) for each in told)
    with serving(replace(base, devices=(replace(device, history=history),)), told) as server:
        page = opened(server)
        expect(page.locator("path.line.high")).to_have_attribute("d", re.compile("L"))
        arrays, code, gap = (heights(page, "gpu:0", kind) for kind in ("arrays", "code", "gap"))
        line = page.locator("path.line.used").get_attribute("d") or ""
        used = {float(x): float(y) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", line)}
        assert list(arrays) == list(code) == list(gap) == list(used)
        assert len(arrays) == 11
        (first, *_) = gap
        scale = gap[first] / 40
        assert arrays[first] == pytest.approx(10 * scale, abs=0.2)
        assert code[first] - arrays[first] == pytest.approx(5 * scale, abs=0.2)
        assert gap[first] - code[first] == pytest.approx(25 * scale, abs=0.2)
        floor = page.locator("svg.chart line.grid").first.evaluate("line => +line.getAttribute('y1')")
        for x, y in used.items():
            assert floor - y == pytest.approx(gap[x], abs=0.15)
        page.locator("figure[data-device='gpu:0'] svg").focus()
        page.keyboard.press("ArrowLeft")
        shown_there = text(page, "#tip")
        gap_now = memory.in_use_bytes - memory.live_array_bytes - CODE
        for part in (f"code {shown(CODE)}", f"temporaries and rest {shown(gap_now)}", "high water", "limit 79.6 GiB"):
            assert part in shown_there
        expect(page.locator("line.peak")).to_have_count(1)
        expect(page.locator("line.limit")).to_have_count(1)


def test_events_bring_what_is_older_than_the_snapshots_history(opened: Opener) -> None:
    """Samples of an hour before come in front of the curve, once, and none of another process stays."""
    base = full()
    device = base.devices[0]
    snapshot = replace(base, devices=(device,))
    with serving(snapshot, samples(device, 20)) as server:
        page = opened(server)
        line = page.locator("path.line.used")
        expect(page.locator("path.line.high").first).to_have_attribute("d", re.compile("L"))
        before = heights(page, "gpu:0", "arrays")
        assert min(before) == pytest.approx(54, abs=0.2)
        oldest = max(y for x, y in before.items() if x < 60)
        newest = list(before.values())[-1]
        assert oldest / newest == pytest.approx(0.5, abs=0.02)
        server.events = []
        server.snapshot = replace(without_allocator(), process=process(pid=PID + 1, started=NOW - 3))
        expect(page.locator("#notice")).to_contain_text(f"pid {PID + 1}")
        expect(page.locator("figure.device")).to_have_count(8)
        expect(line).to_have_count(8)
        expect(page.locator("path.area.gap")).to_have_count(0)


def test_the_largest_groups_are_told_with_shares_and_call_sites(opened: Opener) -> None:
    """Shape, type, sharding, arrays, bytes on a device and their share; the rest on demand; other memories last."""
    with serving(full()) as server:
        page = opened(server)
        rows = page.locator("#groups-rows tr")
        expect(rows).to_have_count(8)
        memory = server.snapshot.devices[0].memory
        assert memory and memory.live_array_bytes
        leak = rows.filter(has=page.locator(".sharding", has_text=re.compile("^gpu:0$")))
        cells = re.sub(r"\s+", " ", leak.inner_text())
        share = round(100 * int(7.2 * GIB) / memory.live_array_bytes)
        for part in (
            "float32[64,4096]",
            "7,372",
            "7.2 GiB gpu:0",
            f"{share} %",
            "created at maxtext/train.py:231 99 %",
            "created at maxtext/metrics.py:88 <1 %",
        ):
            assert part in cells, (part, cells)
        sharded = re.sub(r"\s+", " ", rows.first.inner_text())
        assert "P(None, 'fsdp', 'tensor') over fsdp=4, tensor=2" in sharded and "8.4 GiB on each of 8" in sharded
        width = rows.first.locator(".bar i").evaluate("i => parseFloat(i.style.width)")
        assert width == pytest.approx(100 * int(8.4 * GIB) / memory.live_array_bytes, rel=1e-3)
        page.get_by_role("button", name="show 2 more").click()
        expect(rows).to_have_count(10)
        expect(rows.last).to_contain_text("pinned_host")
        marked = rows.filter(has=page.locator(".marks button"))
        expect(marked).to_have_count(1)
        expect(marked.locator(".sharding")).to_have_text("gpu:0")
        marked.get_by_role("button", name="array leak").click()
        expect(page.locator("#findings-list > li[data-kind=array_leak]:not(.over)")).to_be_focused()
        colours = page.locator("#groups-rows .swatch").evaluate_all("all => all.map(i => i.style.background)")
        assert len(set(colours[:6])) == 6 and set(colours[6:]) == {"var(--memory-live)"}


def test_a_group_keeps_its_colour_when_another_overtakes_it(opened: Opener) -> None:
    """A group keeps its colour, so that nobody takes it for another."""
    mine = "#groups-rows tr:has-text('152064') .swatch"
    with serving(full()) as server:
        page = opened(server)
        colour = page.locator(mine).get_attribute("style")
        grown = tuple(
            group(each.shape, each.sharding, 9 * GIB, 1) if each.shape[0] == 152064 else each for each in groups()
        )
        server.snapshot = replace(server.snapshot, array_groups=grown)
        expect(page.locator("#groups-rows tr").first).to_contain_text("152064")
        assert page.locator(mine).get_attribute("style") == colour


def test_where_the_allocator_tells_nothing_the_arrays_stand_alone_and_it_is_said(opened: Opener) -> None:
    """The CPU: bars of live arrays without free space, code or rest, and a sentence why."""
    with serving(without_allocator()) as server:
        page = opened(server)
        widths = bar(page, "cpu:0")
        assert widths == pytest.approx({"float32[64,1024]": 100 * 10 / 13, "float32[1024,512]": 100 * 3 / 13}, rel=1e-4)
        assert sum(bar(page, "cpu:5").values()) == pytest.approx(100 * 3 / 13, rel=1e-4)
        assert "JAX’s CPU allocator reports no figures" in text(page, "#account-facts .note")
        assert set(figures(page)) == {"float32[64,1024]", "float32[1024,512]", "live arrays"}
        expect(page.locator("path.area.arrays")).to_have_count(8)
        expect(page.locator("path.area.gap, path.area.code, line.limit, line.peak")).to_have_count(0)
        assert text(page, "#memory-legend") == "live arrays one scale for all"
        assert text(page, "#memory-told") == "7 compiled programs loaded"


@pytest.mark.parametrize("width,scheme", [(1440, "light"), (360, "dark")])
def test_sixty_four_devices_stay_apart_with_the_fullest_first(opened: Opener, width: int, scheme: str) -> None:
    """Each has its bar and its chart, the fullest leads, the order can be changed, and nothing is cut off sideways."""
    with serving(many()) as server:
        page = opened(server, viewport={"width": width, "height": 900}, color_scheme=scheme)
        names = "all => all.map(each => each.dataset.device)"
        shares = page.locator("#accounts .quiet").all_inner_texts()
        assert len(shares) == 64
        numbers = [int(each.split()[0]) for each in shares]
        assert numbers == sorted(numbers, reverse=True)
        fullest = max(server.snapshot.devices, key=lambda each: each.memory.in_use_bytes if each.memory else 0)  # type: ignore[return-value,arg-type]
        assert page.locator("#accounts li").evaluate_all(names)[0] == fullest.device
        assert page.locator("#charts figure").evaluate_all(names) == page.locator("#accounts li").evaluate_all(names)
        page.get_by_role("button", name="order: fullest first").click()
        assert page.locator("#accounts li").evaluate_all(names) == [f"gpu:{index}" for index in range(64)]
        expect(page.locator("#accounts .most strong")).to_have_text(fullest.device)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        drawn = page.locator("#accounts li[data-device='gpu:63'] .bar").bounding_box()
        assert drawn and drawn["width"] > 60


def test_programs_that_need_most_are_set_against_what_is_left(opened: Opener) -> None:
    """Temporaries and new outputs beside the arguments; one that needs more than what is left is marked."""
    tight = full_gpu(0, groups(), extra=30 * GIB)
    left = replace(full(), devices=(tight, *full().devices[1:]))
    with serving(replace(left, headroom=headroom(left.devices))) as server:
        page = opened(server)
        rows = page.locator("#programs-rows tr")
        expect(rows).to_have_count(5)
        state = next(each.program for each in server.snapshot.functions if each.name == "maxtext.train.train_step")
        assert isinstance(state, ProgramState) and state.needed
        assert text(page, "#programs-rows tr .needed") == f"{shown(state.needed)} more than is left"
        expect(rows.nth(4).locator(".needed")).to_have_text("205 MiB")
        widths = dict(
            rows.first.locator(".bar i").evaluate_all(
                "all => all.map(i => [i.dataset.part, parseFloat(i.style.width)])"
            )
        )
        assert widths["temp"] / widths["argument"] == pytest.approx(31 / 26, rel=1e-3)
        assert "output" not in widths
        assert "arguments 26.0 GiB" in str(rows.first.locator(".sections").get_attribute("title"))


def test_a_call_that_died_of_memory_is_told_first_while_the_process_lives(opened: Opener) -> None:
    """The panel appears without a reload, above all else, with sizes, causes, advice, evidence and details."""
    with serving(full(), events()) as server:
        page = opened(server)
        expect(page.locator("#oom")).to_be_hidden()
        server.snapshot = died()
        expect(page.locator("#oom")).to_be_visible()
        panels = page.locator("main > :not([hidden])")
        assert [panels.nth(place).get_attribute("id") for place in (0, 1)] == ["verdict", "oom"]
        report = server.snapshot.last_out_of_memory
        assert report
        said = text(page, "#oom")
        for part in (
            "Out of memory maxtext.train. eval_step while it ran",
            "3 times: eval_step 3",
            "wanted 9.0 GiB",
            "free 6.5 GiB",
            "device gpu:0",
            report.report or "",
            "maxtext/train.py:340",
            *(each.summary.replace("`", "") for each in report.causes),
            *(each.advice.replace("`", "") for each in report.causes),
            *report.causes[0].evidence,
        ):
            assert part in said, part
        expect(page.locator("#oom-status")).to_contain_text("Out of memory: maxtext.train.eval_step, 9.0 GiB wanted.")
        details = page.locator(".opened > details")
        assert [each.split(" (")[0] for each in details.locator("> summary").all_inner_texts()] == [
            "Devices at that moment", "Largest groups of live arrays", "What the program needs",
            "Compilations before it", "Memory before it", "Error, versions, flags",
        ]  # fmt: skip
        for each in details.all():
            each.locator("> summary").press("Enter")
        said = text(page, "#oom")
        memory = report.devices[7]
        for part in (
            f"gpu:7 {shown(memory.in_use_bytes or 0)} 79.6 GiB",
            "float32[64,4096] gpu:0 7,372 7.2 GiB 21 %",
            "According to the compiler arguments 26.0 GiB, outputs 4.0 KiB, temporaries 9.0 GiB",
            "jit(eval_step)/dot_general f32[64,4096,4096]{2,1,0} — 4.0 GiB",
            "gpu:0 in use 72.9 GiB",
            "XLA_PYTHON_CLIENT_MEM_FRACTION=.95",
            "RESOURCE_EXHAUSTED: Out of memory while trying",
        ):
            assert part in said, part
        row(page, "maxtext.train.eval_step").locator(".toggle").click()
        expect(row(page, "maxtext.train.eval_step").locator(".detail")).to_contain_text(
            "2 calls on gpu:0, 1 call on gpu:3"
        )


def test_a_report_that_was_hidden_stays_so_until_another_comes(opened: Opener) -> None:
    """A closed panel leaves one line, also after an update; the next error opens the panel again."""
    with serving(died()) as server:
        page = opened(server)
        page.click("#oom-toggle")
        expect(page.locator("#oom-body")).to_be_hidden()
        expect(page.locator("#oom-toggle")).to_have_attribute("aria-expanded", "false")
        server.snapshot = replace(server.snapshot, time=NOW + 60)
        expect(page.locator("#oom-ago")).to_contain_text("3 min")
        expect(page.locator("#oom-body")).to_be_hidden()
        bare = out_of_memory(
            (), sequence=99, time=NOW + 61, function="m.other", causes=(), report=None, seconds=None, device=None
        )
        server.snapshot = replace(server.snapshot, last_out_of_memory=bare)
        expect(page.locator("#oom-body")).to_be_visible()
        expect(page.locator("#oom-body")).to_contain_text("Too many such errors")


def test_a_finding_that_is_over_is_shown_quietly_with_its_time(opened: Opener) -> None:
    """Last, without colour, with the time it ended; it stands no more, and a leak claims no compilations."""
    with serving(replace(full(), findings=(LEAK, *rich().findings[:1]))) as server:
        page = opened(server)
        cards = page.locator("#findings-list > li")
        assert cards.evaluate_all("all => all.map(each => each.dataset.kind)") == [
            "array_leak",
            "two_shardings_at_start",
        ]
        assert not re.search("compilation|lost", cards.first.locator(".figures").inner_text())
        expect(page.locator("#findings-count")).to_have_text("2")
        assert "grew in 118 samples" in cards.first.locator(".figures").inner_text()
        cards.first.locator("summary").press("Enter")
        evidence = re.sub(r"\s+", " ", cards.first.locator(".evidence").inner_text())
        for part in ("bytes per call 1.0 MiB", "full in seconds 1 h 02 min", "/srv/runs/maxtext/the_train.py:231 16"):
            assert part in evidence
        server.snapshot = replace(server.snapshot, findings=(FINDING_OVER, *rich().findings[:1]))
        expect(page.locator("#findings-count")).to_have_text("1, 1 over")
        assert cards.evaluate_all("all => all.map(each => each.dataset.kind)") == [
            "two_shardings_at_start",
            "array_leak",
        ]
        expect(cards.last).to_have_class(re.compile("over"))
        expect(cards.last.locator(".figures")).to_contain_text("over since")
        expect(page.locator("#findings-status")).to_contain_text("1 finding. `train_step`")
        server.snapshot = replace(server.snapshot, findings=(FINDING_OVER,))
        expect(page.locator("#findings")).to_have_class(re.compile("quieted"))
        expect(page.locator("#findings-status")).to_be_empty()


def test_accelerators_are_told_as_their_driver_sees_them(opened: Opener) -> None:
    """Use, memory, power, temperature, clock, processes; what is slowed, failing or gone is marked; empty is absent."""
    with serving(full()) as server:
        page = opened(server)
        rows = page.locator("#accelerators-rows tr")
        expect(rows).to_have_count(8)
        said = [re.sub(r"\s+", " ", each).strip() for each in rows.all_inner_texts()]
        assert said[0] == (
            "gpu:0 NVIDIA H100 80GB HBM3 97 % 71.0 GiB of 80.0 GiB 612 W of 700 W 61 °C 1.98 GHz "
            f"{PID} this one 70.0 GiB"
        )
        assert "slowed: sw power cap slowed: hw thermal slowdown" in said[4] and "idle" not in said[4]
        assert "9001 another 8.0 GiB" in said[5]
        assert "Xid 63 × 2" in said[6] and "1 uncorrected ECC error" in said[6]
        assert said[7].count("—") == 6 and said[7].endswith("does not answer")
        width = (
            rows.nth(5)
            .locator("td")
            .nth(1)
            .locator(".bar i")
            .evaluate("i => [i.parentElement.children.length, parseFloat(i.style.width)]")
        )
        assert width == [1, pytest.approx(98, abs=0.1)]
        server.snapshot = replace(server.snapshot, accelerators=())
        expect(page.locator("#accelerators")).to_be_hidden()


def test_captures_are_told_in_a_line(opened: Opener) -> None:
    """The line says what was written, how large, or why it was refused; without captures there is no line."""
    refused = capture(
        2001, name="profile", result="refused", detail="One is under way.", path=None, bytes=None, seconds=None
    )
    with serving(full()) as server:
        page = opened(server)
        expect(page.locator("#actions")).to_be_hidden()
        server.events += [capture(2000), refused]
        expect(page.locator("#actions")).to_contain_text("captures/memory-0001.prof")
        said = text(page, "#actions")
        assert said.index("profile refused One is under way.") < said.index("memory done")
        assert "47.0 KiB in 210 ms" in said


def test_hostile_names_of_memory_are_only_text(opened: Opener) -> None:
    """Names of arrays, shardings, lines, devices, causes and captures are shown and never run."""
    device = full_gpu(0, groups())
    assert device.memory
    held = replace(device.memory, device=HOSTILE, other_space_bytes={HOSTILE: 5})
    bad = group((2, 3), HOSTILE, GIB, 1, dtype=HOSTILE, call_sites={HOSTILE: 2}, bytes_per_device={HOSTILE: GIB})
    proto = group((7,), "__proto__", 5, 1, memory_kind="__proto__", bytes_per_device={"__proto__": 5, HOSTILE: 6})
    report = out_of_memory(
        (bad,),
        function=HOSTILE, stage=HOSTILE, error=HOSTILE, message=HOSTILE, device=HOSTILE, call_site=HOSTILE,
        signature=HOSTILE, sections={HOSTILE: 1}, program={HOSTILE: 2}, devices=(held,), host={HOSTILE: 1},
        report=HOSTILE,
        buffers=(MemoryBuffer(size=1, operator=HOSTILE, shape=HOSTILE),), compilations=(HOSTILE,), samples=(HOSTILE,),
        causes=(OomCause(cause=HOSTILE, summary=HOSTILE, advice=HOSTILE, evidence=(HOSTILE,)),),
        versions={HOSTILE: HOSTILE}, flags={HOSTILE: HOSTILE},
    )  # fmt: skip
    odd = accelerator(
        0, device=HOSTILE, uuid=HOSTILE, model=HOSTILE, throttle_reasons=(HOSTILE,), xid_errors={HOSTILE: 1},
        driver_version=HOSTILE, processes=(AcceleratorProcess(pid=1, bytes=None, ours=None),), up=False,
        trouble=HOSTILE, parent=HOSTILE,
    )  # fmt: skip
    snapshot = replace(
        full(),
        functions=(function(HOSTILE, out_of_memory={HOSTILE: 1, "__proto__": 1}),),
        devices=(replace(device, device=HOSTILE, device_kind=HOSTILE, platform=HOSTILE, memory=held),),
        array_groups=(bad, proto),
        accelerators=(odd,),
        last_out_of_memory=report,
    )
    done = capture(7, name=HOSTILE, result=HOSTILE, path=HOSTILE, detail=HOSTILE)
    with serving(snapshot, [done, replace(held, time=NOW - 50, sequence=8, pid=PID)]) as server:
        page = opened(server)
        page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        page.locator("#table .toggle").first.click()
        page.locator("#accounts button").first.click()
        page.locator("figure.device svg").hover()
        expect(page.locator("#oom-title .fn")).to_have_text(HOSTILE)
        expect(page.locator("#groups-rows .sharding").first).to_have_text(HOSTILE)
        expect(page.locator("#actions")).to_contain_text(HOSTILE)
        assert page.evaluate("document.images.length + document.querySelectorAll('script').length") == 2
        assert page.evaluate("window.pwned") is None


def no_slips(page: Page) -> bool:
    """Whether no text shows a slip of the page."""
    page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
    return not re.search(r"undefined|NaN|\bnull\b|\[object|Infinity", page.locator("body").inner_text())


@pytest.mark.parametrize("make", [empty, full, died, without_allocator, many])
def test_nothing_that_is_not_known_slips_into_a_text(opened: Opener, make: object) -> None:
    """A process without a backend has no panel of memory, accelerators or reports, and no odd word."""
    assert callable(make)
    snapshot: Snapshot = make()
    with serving(snapshot) as server:
        page = opened(server)
        assert no_slips(page)
        for panel in ("#held", "#programs", "#actions"):
            expect(page.locator(panel)).to_be_visible(
                visible=(bool(snapshot.devices) and panel == "#held")
                or (panel == "#programs" and any(each.program for each in snapshot.functions))
            )
        expect(page.locator("#accelerators")).to_be_visible(visible=bool(snapshot.accelerators))
        expect(page.locator("#oom")).to_be_visible(visible=snapshot.last_out_of_memory is not None)


def test_a_device_that_tells_only_what_is_in_use_is_not_split(opened: Opener) -> None:
    """Arrays not known: one part, no account, and an area that claims nothing."""
    device = full_gpu(0, groups())
    history = tuple((time, used, None) for time, used, _ in device.history)
    bare = DeviceMemory(time=NOW, device="gpu:0", in_use_bytes=5 * GIB, limit_bytes=10 * GIB)
    snapshot = replace(full(), devices=(replace(device, memory=bare, account=None, history=history),), array_groups=())
    with serving(snapshot) as server:
        page = opened(server)
        assert bar(page, "gpu:0") == {"in use, of what is not known": 50}
        expect(page.locator("path.area.unsplit")).to_have_count(1)
        expect(page.locator("path.area.gap, path.area.arrays")).to_have_count(0)
        expect(page.locator("#groups")).to_be_hidden()
        assert no_slips(page)


TEXTS = (
    "#oom h2", "#oom h2 .quiet", "#oom-times", "#oom-ago", "#oom-toggle", ".figures-row dt", ".figures-row dd",
    ".causes-list .kind", ".causes-list .summary", ".causes-list .advice strong", ".causes-list li li",
    ".where", ".where code", ".opened summary", ".told-lines", ".plain thead th", ".plain td",
    ".plain tbody th", ".over .kind", ".over .summary", ".over .advice strong", "#memory-told li",
    "#accounts strong", "#accounts .used", "#accounts .quiet", "#account-facts dt", "#account-facts dd",
    "#account-facts h3 .quiet", ".shape", ".sharding", ".sites", ".groups td", ".groups small", ".named .part",
    ".programs td", ".programs .slow", "#actions li", "#accelerators td", "#accelerators small",
    ".badge.slowed", ".badge.lost", ".who .other", "#accelerators .down th",
)  # fmt: skip


@pytest.mark.parametrize("width,scheme", [(1440, "light"), (768, "dark"), (360, "light")])
def test_memory_can_be_read_everywhere(opened: Opener, width: int, scheme: str) -> None:
    """Contrast of at least 4.5 to 1, nothing wider than the window, and a name for each control and each region."""
    tight = full_gpu(3, groups(), extra=42 * GIB)
    devices = tuple(tight if each.device == "gpu:3" else each for each in died().devices)
    snapshot = replace(died(), devices=devices, headroom=headroom(devices))
    with serving(snapshot, [*events(), capture(2000)]) as server:
        page = opened(server, viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        page.get_by_role("button", name=re.compile("^show [0-9]+ more")).first.click()
        expect(page.locator("#actions")).to_be_visible()
        expect(page.locator("#accounts [data-device='gpu:3']")).to_have_attribute("data-state", "bad")
        ratios = page.evaluate(CONTRAST, list(TEXTS))
        assert set(ratios) == set(TEXTS)
        assert {selector: ratio for selector, ratio in ratios.items() if ratio < 4.5} == {}
        assert page.evaluate("document.documentElement.scrollWidth") == width
        wide = """[...document.querySelectorAll('#devices .scroll, #accelerators .scroll')]
            .map(box => box.scrollWidth - box.clientWidth)"""
        assert max(page.evaluate(wide)) <= 0
        nameless = """[...document.querySelectorAll(':is(#oom, #devices, #accelerators) :is(button, [role])')]
            .filter(each => !(each.getAttribute('aria-label') || each.textContent.trim() || each.hidden)).length"""
        assert page.evaluate(nameless) == 0
        ids: list[str] = page.locator("[id]").evaluate_all("all => all.map(each => each.id)")
        assert len(ids) == len(set(ids))
