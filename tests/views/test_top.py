"""`jaxobs top`: its short texts, the client and the feed that it reads by, the command, and live in a real terminal."""

import argparse
import dataclasses
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.answering import serving
from helpers.tmux import Tmux, terminal
from helpers.top_snapshots import GIB, STARTED, URL, CannedEndpoint, compilations, finding, process, snapshot

from jaxobs.base.errors import MissingExtraError, SettingError, install
from jaxobs.cli import top
from jaxobs.facts.compilations import CacheLookup, OpenCompilation
from jaxobs.facts.events import as_event, plain
from jaxobs.views import client
from jaxobs.views.client import EndpointUnreachableError, NotAnEndpointError
from jaxobs.views.terminal import make_console
from jaxobs.views.terminal.text import (
    ASCII,
    UNICODE,
    ago,
    bar,
    causes,
    duration,
    flops,
    middle,
    number,
    program_bytes,
    safe,
    shares,
    size,
    spark,
)  # fmt: skip
from tools.ports import free_port

# -------------------------------------------------------------------------------------- the short texts

DURATIONS = {
    None: "", float("nan"): "", 0: "0 s", 0.00084: "0.84 ms", 0.0123: "12.3 ms", 0.9994: "999 ms", 0.9996: "1.00 s",
    1.234: "1.23 s", 9.999: "10.0 s", 59.96: "60.0 s", 99.96: "1m40s", 75: "75.0 s", 119.6: "2m00s", 3_599.7: "1h00m",
    11_520: "3h12m", 187_200: "2d04h",
}  # fmt: skip
NUMBERS = {
    None: "", 0: "0", 7: "7", 0.5: "0.5", 9.96: "10", 43.2: "43", 12_345: "12,345", 999_499: "999,499", 999_500: "1M",
    1_234_567: "1.23M", 4_560_000_000: "4.56G",
}  # fmt: skip
SIZES = {
    None: "", 0: "0 B", 999: "999 B", 1000: "0.977 KiB", 1536: "1.5 KiB", 123 * 2**20: "123 MiB", 71 * GIB: "71 GiB",
    2**50: "1024 TiB",
}  # fmt: skip
FLOPS = {
    None: "", 0.0: "0 FLOP", 950.0: "950 FLOP", 999.6: "1 kFLOP", 1.318e15: "1.32 PFLOP", 4e24: "4e+06 EFLOP",
}  # fmt: skip
AGES = {-3: "0 s ago", 8.2: "8 s ago", 172: "2m52s ago"}


@pytest.mark.parametrize(
    ("write", "texts"), [(duration, DURATIONS), (number, NUMBERS), (size, SIZES), (flops, FLOPS), (ago, AGES)]
)
def test_figures_are_short_whatever_their_size(write: Callable[[Any], str], texts: dict[Any, str]) -> None:
    assert {value: write(value) for value in texts} == texts
    assert write is not number or max(map(len, texts.values())) <= 7, "it fits seven cells"


def test_program_bytes_count_shared_memory_once() -> None:
    """Memory that outputs take over from arguments is not there twice; an unknown figure is not zero."""
    assert program_bytes({"argument": 10, "output": 8, "alias": 8, "temp": 3}) == 13
    assert program_bytes({}) is None


def test_middle_keeps_both_ends() -> None:
    """A long name is cut in the middle, and the end, which tells most, keeps more."""
    assert middle("library_models_attention_forward", 16) == "libra…on_forward"
    assert middle("jax.models.attention.forward", 22) == "jax…attention.forward"
    assert middle("jax.models.attention.forward", 16) == "jax…forward"
    assert middle("jax.models.Attention.__call__", 20) == "jax…tention.__call__"
    assert middle("jax.models.attention.forward", 8) == "ja…rward"
    assert middle("short", 16) == "short"
    assert middle("anything", 1) == "…"


def test_safe_takes_control_characters_out() -> None:
    """Escape codes, line breaks and what the encoding cannot show do not get through."""
    assert safe("a\x1b[31mred\n  b\u202ec") == "a?[31mred b?c"
    assert safe("größe…", "ascii") == "gr??e?"


def test_causes_come_by_count_and_say_what_is_left_out() -> None:
    """The first call, which everything has, comes last; what does not fit is counted."""
    dtype, shape, first = ("dtype", "dtype×3"), ("shape", "shape×2"), ("first_call", "first_call×1")
    counts = {"first_call": 1, "shape": 2, "dtype": 3}
    assert causes(counts, 60, UNICODE) == [dtype, shape, first]
    assert causes(counts, 18, UNICODE) == [dtype, shape, ("", "+1")]
    assert causes(counts, 12, UNICODE) == [dtype, ("", "+3")]
    assert causes({"static_argument": 10}, 12, ASCII) == [("static_argument", "static_argu~")]
    assert causes({}, 12, UNICODE) == []


def test_shares_add_up() -> None:
    """The parts of a bar take as many cells as their sum, and something is always seen."""
    parts = {"trace": 1.0, "lower": 1.0, "compile": 2.0}
    assert dict(shares(parts, 8.0, 8)) == {"trace": 1, "lower": 1, "compile": 2}
    assert dict(shares(dict.fromkeys(parts, 1.0), 3.0, 8)) == {"trace": 3, "lower": 3, "compile": 2}
    assert shares({"compile": 0.001}, 100.0, 8) == [("compile", 1)]
    assert shares({"trace": 0.0}, 1.0, 8) == []


def test_bars_and_sparks() -> None:
    """A bar has the width that was asked for; a spark line needs two values and Unicode."""
    assert bar(0.5, 4, UNICODE) == ("██", "░░")
    assert bar(0.28, 4, UNICODE) == ("█▏", "░░")
    assert bar(0.5, 3, ASCII) == ("##", ".")
    assert bar(7.0, 4, ASCII) == ("####", "")
    assert spark([0, 5, 10], 10, UNICODE) == "▁▄█"
    assert spark([1], 10, UNICODE) == spark([1, 2], 10, ASCII) == spark([0, 0], 10, UNICODE) == ""


# ------------------------------------------------------------------------------------------- the client


ADDRESSES = {
    "9464": URL, ":9464": URL, "9464/metrics": URL, "localhost": "http://localhost:9464",
    "localhost:9000": "http://localhost:9000", "node-7:9464/metrics": "http://node-7:9464", f"{URL}/": URL,
    f"{URL}/metrics": URL, f"{URL}/api/v1/snapshot": URL, f" {URL}/healthz ": URL, "[::1]:9464": "http://[::1]:9464",
    "https://proxy.example/jobs/7/metrics": "https://proxy.example/jobs/7",
}  # fmt: skip


def test_an_address_may_be_given_in_any_form() -> None:
    assert {given: client.endpoint_url(given) for given in ADDRESSES} == ADDRESSES


@pytest.mark.parametrize("given", ["", "ftp://x:1", "foo bar", "host:notaport", "http://", "localhost:99999", "0"])
def test_what_is_no_address_is_refused_with_the_forms_that_are(given: str) -> None:
    with pytest.raises(SettingError, match=r"is not the address of an endpoint. Give a port \(9464\)"):
        client.endpoint_url(given)


def test_facts_come_back_as_they_were() -> None:
    endpoint = CannedEndpoint(snapshot(), compilations())
    with serving(endpoint.answer) as url:
        assert client.fetch_snapshot(url) == snapshot()
        page = client.fetch_events(url, since=40, kind="compilation")
    assert page == client.EventPage(compilations()[40:], next=60, dropped=0)
    assert endpoint.asked == ["/api/v1/snapshot", "/api/v1/events?since=40&kind=compilation"]


def test_newer_process_is_read() -> None:
    """Fields and kinds of events that this version does not know are left out."""
    body = plain(snapshot()) | {"something_new": 1}
    body["process"]["something_new"] = [1]
    known = as_event(compilations()[0])
    events = {"events": [known, {"event": "something_new", "time": known["time"]}], "next": 2, "dropped": 0}
    with serving(lambda path: body if "snapshot" in path else events) as url:
        assert client.fetch_snapshot(url) == snapshot()
        assert client.fetch_events(url).events == compilations()[:1]


def test_nothing_listens() -> None:
    """A refused connection names the address, what was asked, and what to do; at the first look it is no empty view."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(EndpointUnreachableError) as caught:
        top.Feed(url, 1.0).look(first=True)
    assert str(caught.value) == (
        f"No jaxobs endpoint at `{url}` (GET {url}/api/v1/snapshot: connection refused). Start a program with `jaxobs "
        "run SCRIPT`, or call `jaxobs.start()` in it; for a different port, run `jaxobs top PORT`."
    )


def test_slow_endpoint_times_out() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(EndpointUnreachableError, match=r"no answer within 0\.2 s\)\. The program may be stopped"),
    ):
        client.fetch_snapshot(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.2)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (404, "it is not a jaxobs endpoint .*HTTP 404 Not Found"),
        (500, "it is not a jaxobs endpoint .*HTTP 500"),
        (b"<html>hello</html>", "it is not a jaxobs endpoint .*the answer is not JSON"),
        ([1, 2], "not as this version of jaxobs expects .*`the answer` is list instead of an object"),
        ({"time": 1.0}, "not as this version of jaxobs expects .*`process` is missing"),
        (plain(snapshot()) | {"time": "noon"}, "`time` is str instead of"),
        (plain(snapshot()) | {"functions": [{"name": 7}]}, r"`functions\.name` is int instead of"),
    ],
)  # fmt: skip
def test_something_else_listens(body: Any, said: str) -> None:
    """An answer that is none of ours says so, and names the field that does not fit."""
    with serving(lambda path: body) as url, pytest.raises(NotAnEndpointError, match=said):
        client.fetch_snapshot(url)


def test_something_else_than_http_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            connection.close()

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(NotAnEndpointError, match="no HTTP answer, BadStatusLine"):
            client.fetch_snapshot(f"http://127.0.0.1:{server.getsockname()[1]}")


# --------------------------------------------------------------------------------------------- the feed


def test_feed_tells_rates_and_asks_for_new_events_only() -> None:
    """Calls a second come from two looks, and the second look asks for what came after the first."""
    lookup = CacheLookup(time=STARTED + 184, sequence=49, function="__main__.train_step", result="miss")
    endpoint = CannedEndpoint(snapshot(), (*compilations(), lookup))
    with serving(endpoint.answer) as url:
        feed = top.Feed(url, 1.0)
        feed.look(first=True)
        assert feed.view().rates == {}
        first = snapshot().functions[0]
        later = (dataclasses.replace(first, calls=first.calls + 50), *snapshot().functions[1:])
        endpoint.state = snapshot(time=STARTED + 194, functions=later)
        feed.look()
    view = feed.view()
    assert view.rates["__main__.train_step"] == 25.0
    assert len(view.compilations) == len(compilations())
    assert view.lookups == (lookup,)
    kinds = ("compilation", "cache_lookup")
    assert endpoint.asked[-2:] == [f"/api/v1/events?since=60&kind={kind}" for kind in kinds]


def test_feed_keeps_the_last_values_and_comes_back() -> None:
    """A process that is gone leaves its values; one that is started again is read from its first event."""
    endpoint = CannedEndpoint(snapshot(), compilations())
    with serving(endpoint.answer) as url:
        feed = top.Feed(url, 1.0)
        feed.look(first=True)
    feed.look()
    gone = feed.view()
    assert gone.snapshot == snapshot()
    assert gone.connection.gone_since is not None
    assert gone.connection.error == "connection refused"
    feed.look()
    assert feed.view().connection.gone_since == gone.connection.gone_since
    endpoint.state = snapshot(process=process(pid=4800, started=STARTED + 500), last_sequence=3)
    endpoint.events = compilations()[:3]
    with serving(endpoint.answer, int(url.rpartition(":")[2])):
        feed.look()
    back = feed.view()
    assert back.connection.gone_since is None
    assert "has restarted: pid 4800" in back.connection.news
    assert back.compilations == compilations()[:3]
    assert "since=0" in endpoint.asked[-1]


# ------------------------------------------------------------------------------------------ the command


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="jaxobs top")
    top.configure(parser)
    return parser.parse_args(arguments)


def test_pipe_gets_one_plain_snapshot(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that is not a terminal gets one snapshot without a single escape code."""
    monkeypatch.delenv("COLUMNS", raising=False)
    with serving(CannedEndpoint(snapshot(), compilations()).answer) as url:
        assert top.run(parsed(url)) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "train_step" in text and "helper_00" in text and "41 eager operations" in text
    assert "live" not in text.splitlines()[0]
    assert max(map(len, text.splitlines())) <= 100


def test_pipe_works_without_rich(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain snapshot needs nothing beyond the bare install."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    with serving(CannedEndpoint(snapshot()).answer) as url:
        assert top.run(parsed(url, "--once")) == 0
    assert "train_step" in capsys.readouterr().out


def test_live_view_without_rich_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtraError) as caught:
        make_console("jaxobs top")
    assert str(caught.value) == "`jaxobs top` needs `rich`, from the extra `cli`. Install it with: " + install("cli")


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "often", "1e9"])
def test_interval_is_checked(interval: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(f"--interval={interval}")
    assert caught.value.code == 2
    assert "is not a number of seconds between 0.1 and 3600" in capsys.readouterr().err


COMMAND = [sys.executable, "-m", "jaxobs", "top"]


def test_unreachable_ends_with_2() -> None:
    """The command prints one line and ends with 2."""
    ended = subprocess.run([*COMMAND, str(free_port())], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert re.fullmatch(r"jaxobs: No jaxobs endpoint at `.*\n", ended.stderr)


def test_reader_that_has_enough_is_no_error() -> None:
    """`jaxobs top | head -1` ends without a complaint."""
    many = snapshot(functions=snapshot().functions * 200)
    with serving(CannedEndpoint(many).answer) as url:
        command = f"set -o pipefail; {shlex.join(COMMAND)} {url} | head -1"
        ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert ended.stdout.startswith(" train_digits.py")
    assert (ended.returncode, ended.stderr) == (0, "")


# --------------------------------------------------------------------------------- in a real terminal


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """A terminal of 80 by 24 with a shell in it."""
    with terminal(tmp_path) as opened:
        yield opened


def test_live_view_in_a_terminal(tmux: Tmux) -> None:
    """The view fills the terminal, follows its size, tells of a process that is gone, leaves no trace."""
    endpoint = CannedEndpoint(snapshot(), compilations())
    with serving(endpoint.answer) as url:
        tmux.type(f"{shlex.join(COMMAND)} {url} --interval 0.2", "Enter")
        screen = tmux.await_text(r"● live(?s:.*)q quit")
        assert "train_step" in screen and "Recent compilations" in screen
        assert screen.splitlines()[-1].strip().startswith("q quit · ? help · Tab lists")
        endpoint.state = snapshot(in_progress=(OpenCompilation("__main__.new_one", "trace", STARTED + 192, "T"),))
        tmux.await_text("new_one +trace")
        endpoint.state = snapshot(findings=(finding(1),))
        tmux.await_text(r"Findings ─+ 1\n ▸ unbounded shapes  decode_1 +17 compiled +11\.0 s")
        tmux.type("m")
        assert "Functions" not in tmux.await_text("m back")
        tmux.type("m")
        tmux.resize(160, 50)
        screen = tmux.await_text("hit/miss")
        assert len(screen.splitlines()) == 50
        tmux.resize(80, 24)
    tmux.await_text(r"gone since \d\d:\d\d:\d\d")
    assert "train_step" in tmux.await_text("connection refused")
    with serving(endpoint.answer, int(url.rpartition(":")[2])):
        tmux.await_text("● live")
        tmux.type("q")
        screen = tmux.await_text(r"(?m)^ready>$")
    assert "Functions" not in screen
    tmux.type("clear; stty -a | grep -oE -- '-?(icanon|echo)\\b'", "Enter")
    tmux.await_text(r"(?m)^icanon\necho$")


def test_ctrl_c_ends_the_live_view(tmux: Tmux) -> None:
    with serving(CannedEndpoint(snapshot()).answer) as url:
        tmux.type(f"{shlex.join(COMMAND)} {url}; echo code $?", "Enter")
        tmux.await_text("● live")
        tmux.type("C-c")
        tmux.await_text("code 0")
