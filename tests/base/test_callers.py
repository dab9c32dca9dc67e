"""Hosts, origins and tokens of requests, in the words of those who forge them."""

import itertools
import random

import pytest

from jaxobs.base import callers

KNOWN = callers.known_hosts("127.0.0.1", ["train-0.svc", "[2001:DB8::7]"], closed=True)
GOOD = [
    "localhost", "LOCALHOST:9464", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535", "train-0.svc:80",
    "[2001:db8::7]",
]  # fmt: skip
FORGED = [
    "", " ", "evil.com", "[::1].evil.com", "127.0.0.1:80@evil.com", "localhost@evil.com", "user:pw@localhost",
    "localhost.evil.com", "evil.com:localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:080",
    "localhost:-1", "localhost:80x", "localhost:8 0", "localhost:80:80", "localhost:\u0661", "[::1", "::1", "::1]",
    "[::1]]", "[[::1]]", "[::1]x", "[::1]:x", "[::1]@evil.com", "[127.0.0.1]", "[localhost]", "[]", "[::1%lo]",
    "localhost,evil.com", "evil.com, localhost", "localhost;evil.com", "localhost/", "localhost/@evil.com",
    "localhost?", "localhost#", "localhost\\@evil.com", "http://localhost", "//localhost", "localhost.", ".localhost",
    "localhost..", "local host", " localhost", "localhost ", "localhost\t", "localhost\n",
    "localhost\r\nHost: evil.com", "localhost\x00",
    "localhost\x00.evil.com", "loc\u0430lhost", "\uff4cocalhost", "127.1",
    "localho\u017ft", "127.0.0.01", "0x7f.0.0.1", "2130706433", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]",
    "%6cocalhost", "localhost%00", "*", "null",
]  # fmt: skip


@pytest.mark.parametrize("host", GOOD)
def test_hosts_that_are_known(host: str) -> None:
    assert callers.is_asked_for([host], KNOWN)
    assert callers.is_own([f"http://{host}"], [host]) and callers.is_own([f"https://{host}"], [host])


@pytest.mark.parametrize("host", FORGED)
def test_hosts_that_are_forged(host: str) -> None:
    """Neither as the host of a request, nor beside a good one, nor as its origin."""
    assert not callers.is_asked_for([host], KNOWN)
    assert not callers.is_asked_for([host, "localhost"], KNOWN) and not callers.is_asked_for(["localhost", host], KNOWN)
    assert not callers.is_own([f"http://{host}"], ["localhost"])
    if callers.authority(host) is None:
        assert not callers.is_asked_for([host], None) and not callers.is_own([f"http://{host}"], [host])


def test_whatever_is_put_around_a_known_host_is_refused() -> None:
    """20,000 texts of a known host with other pieces: what is let in is a known name, and at most a port behind it."""
    pieces = [
        *GOOD,
        "evil.com",
        ":80",
        ":",
        "@",
        ".",
        "/",
        "\\",
        "[",
        "]",
        "[::1]",
        "%",
        "#",
        "?",
        ",",
        " ",
        "\t",
        "\x00",
        "-",
        "9",
    ]
    chance, let_in = random.Random(20), set()
    for _ in range(20_000):
        forged = "".join(chance.choices(pieces, k=chance.randint(1, 4)))
        if callers.is_asked_for([forged], KNOWN):
            let_in.add(forged)
    names = ["localhost", "127.0.0.1", "[::1]", "train-0.svc", "[2001:db8::7]"]
    for host in let_in:
        [name] = [each for each in names if host.lower().startswith(each)]
        port = host[len(name) :]
        assert not port or (port[0] == ":" and str(int(port[1:])) == port[1:] and 0 < int(port[1:]) < 65536), host
    assert len(let_in) > len(GOOD)


def test_a_server_that_listens_elsewhere_answers_any_name_unless_some_are_given() -> None:
    assert callers.known_hosts("0.0.0.0", [], closed=False) is None
    named = callers.known_hosts("0.0.0.0", ["a"], closed=False)
    assert named == callers.known_hosts("0.0.0.0", ["a"], closed=True) == callers.LOOPBACK | {"0.0.0.0", "a"}
    assert callers.is_asked_for(["pod-7.training.svc:9464"], None) and not callers.is_asked_for(["pod-7:x"], None)
    assert callers.is_asked_for([], KNOWN), "a probe by HTTP/1.0"


@pytest.mark.parametrize(
    ("origins", "own"),
    [
        ([], True), (["http://localhost:80"], True), (["null"], False), ([""], False), (["http://"], False),
        (["http://localhost"], False), (["http://localhost:81"], False), (["ftp://localhost:80"], False),
        (["http://localhost:80/"], False), (["http://localhost:80", "http://localhost:80"], False),
        (["http://localhost:80 http://evil.com"], False), (["localhost:80"], False),
        (["javascript://localhost:80"], False),
    ],
)  # fmt: skip
def test_origins(origins: list[str], own: bool) -> None:
    assert callers.is_own(origins, ["localhost:80"]) is own
    assert callers.is_own(origins, []) is callers.is_own(origins, ["localhost:80"] * 2) is (not origins)


def test_tokens() -> None:
    for scheme, basic in itertools.product(("Bearer", "bearer", " BEARER "), (False, True)):
        assert callers.shown_token(f"{scheme} open\xc3\xa9 ", basic=basic) == "open\u00e9".encode()
    assert callers.shown_token("Basic dTpvcGVu", basic=True) == b"open"
    for given in (None, "", "open", "Basic dTpvcGVu", "Bearer", "Bearer ", "Basic !"):
        assert callers.shown_token(given) == b""
    assert callers.is_token(b"open", "open")
    for shown, token in ((b"", ""), (b"", None), (b"open", ""), (b"ope", "open"), (b"opene", "open"), (b"", "open")):
        assert not callers.is_token(shown, token)
