"""The endpoint with TLS, client certificates, a token and allowed hosts; and the commands that read it."""

import base64
import contextlib
import http.client
import json
import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.certificates import Authority, Pair
from helpers.endpoints import ask, serving
from helpers.made_by_hand import full_store
from helpers.waiting import until

import jaxobs
from jaxobs.base.config import Settings
from jaxobs.base.errors import SettingError
from jaxobs.cli import main
from jaxobs.exporters.targets import _group
from jaxobs.findings.fleet.support.addresses import Address, Addresses
from jaxobs.ops.diagnosis.gathering import targets
from jaxobs.ops.diagnosis.gathering.http import Asked
from jaxobs.views import access, client
from jaxobs.web import endpoints, protection
from jaxobs.web.server import Handle

pytestmark = pytest.mark.usefixtures("fresh")

TOKEN = "0123456789abcdef"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.sign("endpoint")


def tls(pair: Pair, **more: Any) -> dict[str, Any]:
    """The settings for a certificate."""
    return {"tls_certificate": str(pair.certificate), "tls_key": str(pair.key), **more}


def trusting(authority: Authority, own: Pair | None = None) -> ssl.SSLContext:
    """Files that a client needs."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


# ----------------------------------------------------------------------------------------------------- TLS


def test_with_a_certificate_it_speaks_https_and_nothing_else(authority: Authority, pair: Pair) -> None:
    """Verified by a client that trusts the authority; plain HTTP gets no word."""
    with serving(**tls(pair)) as handle:
        assert handle.url == f"https://127.0.0.1:{handle.port}/"
        response, body = ask(handle, context=trusting(authority))
        assert response.status == 200
        assert b"jax_function_calls_total" in body
        plain = http.client.HTTPConnection("127.0.0.1", handle.port, timeout=120)
        with contextlib.closing(plain), pytest.raises((http.client.HTTPException, OSError)):
            plain.request("GET", "/metrics")
            plain.getresponse()


def test_old_versions_of_tls_are_refused(authority: Authority, pair: Pair) -> None:
    """1.2 and 1.3 are spoken; what was broken is not."""
    with serving(**tls(pair)) as handle:
        for version, spoken in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True)):
            context = trusting(authority)
            context.set_ciphers("DEFAULT@SECLEVEL=0")
            with pytest.warns(DeprecationWarning) if not spoken else contextlib.nullcontext():
                context.minimum_version = context.maximum_version = version
            if spoken:
                assert ask(handle, context=context)[0].status == 200
            else:
                with pytest.raises(ssl.SSLError):
                    ask(handle, context=context)


def test_a_client_without_a_certificate_is_turned_away(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    """Mutual TLS: one of the authority is let in, none at all or one of another authority is not, and is counted."""
    store = full_store()
    before = store.snapshot().observer.dropped["tls_handshake"]
    with serving(store, **tls(pair, tls_client_ca=str(authority.certificate))) as handle:
        assert ask(handle, context=trusting(authority, authority.sign("client")))[0].status == 200
        for own in (None, Authority(tmp_path, "other").sign("stranger")):
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                ask(handle, context=trusting(authority, own))
        until(lambda: store.snapshot().observer.dropped.get("tls_handshake") == before + 2)


def test_a_renewed_certificate_is_used(authority: Authority, pair: Pair, tmp_path: Path, monkeypatch: Any) -> None:
    """Without a restart; one that is broken leaves the old one in use, and says so."""
    monkeypatch.setattr(protection, "FRESH_SECONDS", 0.0)
    mine = Pair(tmp_path / "mine.pem", tmp_path / "mine.key")
    for name in ("certificate", "key"):
        shutil.copy(getattr(pair, name), getattr(mine, name))
    store = full_store()
    with serving(store, **tls(mine)) as handle:

        def names() -> str:
            plain = socket.create_connection(("127.0.0.1", handle.port), timeout=120)
            with trusting(authority).wrap_socket(plain, server_hostname="localhost") as connection:
                return str(connection.getpeercert()["subject"])  # type: ignore[index]

        assert "endpoint" in names()
        renewed = authority.sign("renewed")
        for name in ("certificate", "key"):
            shutil.copy(getattr(renewed, name), getattr(mine, name))
        until(lambda: "renewed" in names())
        mine.certificate.write_text("nonsense")
        until(
            lambda: "renewed" in names() and any("continues with" in each for each in store.snapshot().observer.notes)
        )
        assert "renewed" in names()


def test_files_that_are_unusable_are_named(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    """A missing file, the key of another, a passphrase that nobody can type, an authority without a certificate."""
    other, nonsense = authority.sign("other"), tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    cases = [
        ({"tls_certificate": "/nowhere/a.pem"}, "`tls_certificate` is '/nowhere/a.pem', which cannot be read: No such"),
        ({"tls_key": str(pair.key)}, r"`tls_key` is set, but `tls_certificate` is not"),
        ({"tls_client_ca": str(pair.key)}, r"`tls_client_ca` is set, but `tls_certificate` is not"),
        (tls(Pair(pair.certificate, other.key)), r"which cannot be used: key values mismatch"),
        (tls(Pair(pair.certificate, authority.encrypted(other))), r"which cannot be used: .*passphrase"),
        (tls(Pair(nonsense, pair.key)), r"which cannot be used: "),
        (tls(pair, tls_client_ca=str(nonsense)), r"`tls_client_ca` is '.*', which has no certificates"),
    ]
    for settings, complaint in cases:
        with pytest.raises(SettingError, match=complaint), serving(**settings):
            pass


def test_what_cannot_be_protected_is_not_served(tmp_path: Path, caplog: Any, monkeypatch: Any) -> None:
    """A variable that names no certificate must not open the endpoint without one."""
    monkeypatch.setenv("JAXOBS_TLS_CERTIFICATE", str(tmp_path / "nowhere.pem"))
    assert jaxobs.start(port=None) is None
    assert "runs without the endpoint" in caplog.text
    jaxobs.uninstall()
    with pytest.raises(SettingError, match="tls_certificate"):
        jaxobs.start(port=0)


# --------------------------------------------------------------------------------------------------- the token


def _basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200), (f"bearer   {TOKEN} ", 200), (_basic(TOKEN), 200),
        (None, 401), (TOKEN, 401), ("Bearer", 401), ("Bearer ", 401), (f"Bearer {TOKEN}x", 401), ("Bearer \xff", 401),
        (f"Bearer {TOKEN[:-1]}", 401), (_basic("wrong"), 401), (_basic(""), 401), ("Basic not base64", 401),
        (f"Digest {TOKEN}", 401),
    ],
)  # fmt: skip
def test_every_path_but_health_wants_the_token(authorization: str | None, status: int) -> None:
    """As a bearer token, or as the password that a browser asks for. Unknown paths are not told apart without it."""
    headers = {} if authorization is None else {"Authorization": authorization}
    with serving(read_token=TOKEN) as handle:
        for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events", "/api/v1/verdict"):
            response, body = ask(handle, path, **headers)
            assert response.status == status, path
            assert TOKEN.encode() not in body
        assert ask(handle, "/nowhere", **headers)[0].status == (404 if status == 200 else 401)
        assert ask(handle, "/metrics", method="POST", **headers)[0].status == (405 if status == 200 else 401)
        if status == 401:
            assert ask(handle, **headers)[0].headers.get_all("WWW-Authenticate") == [
                'Bearer realm="jaxobs"', 'Basic realm="jaxobs"'
            ]  # fmt: skip
        assert ask(handle, "/healthz", **headers)[0].status == 200


def test_the_token_is_in_no_text(caplog: Any) -> None:
    """Neither in the settings' repr nor in what the endpoint says of itself, nor in its snapshot."""
    handle = jaxobs.start(port=0, read_token=TOKEN, addr="0.0.0.0")
    assert handle is not None
    assert "plain text" in caplog.text
    assert TOKEN not in repr(handle) + repr(handle.settings) + caplog.text
    with contextlib.closing(handle):
        for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events"):
            assert TOKEN.encode() not in ask(handle, path, Authorization=f"Bearer {TOKEN}")[1]


def test_reading_takes_no_right_to_act_and_acting_none_to_read() -> None:
    store = full_store()
    store.configure(Settings(actions=True, action_token="act"))
    with serving(store, read_token=TOKEN) as handle:
        path = "/api/v1/actions/memory"
        assert ask(handle, path, method="POST", Authorization=f"Bearer {TOKEN}")[0].status == 403
        assert ask(handle, path, method="POST")[0].status == 401
        assert ask(handle, "/metrics", Authorization="Bearer act")[0].status == 401


def test_a_later_call_protects_what_is_open(
    authority: Authority, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`jaxobs run` serves before the program calls `start` with a token of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    handle = jaxobs.start(port=0)
    assert handle is not None
    assert ask(handle)[0].status == 200
    assert jaxobs.start(read_token=TOKEN) is handle
    assert ask(handle)[0].status == 401
    jaxobs.install(**tls(pair))
    assert handle.url.startswith("https:")
    assert [each.url for each in endpoints.running()] == [handle.url]
    assert ask(handle, context=trusting(authority))[0].status == 401
    jaxobs.install(max_events=10)
    assert ask(handle, context=trusting(authority), Authorization=f"Bearer {TOKEN}")[0].status == 200


def test_what_one_endpoint_was_given_stays_its_own() -> None:
    """A later `install` that says nothing of the token takes none away."""
    handle = jaxobs.serve(port=0, read_token=TOKEN)
    assert handle is not None
    jaxobs.install()
    jaxobs.install(max_events=10)
    assert ask(handle)[0].status == 401
    with pytest.raises(SettingError, match="`serve` has no setting `max_events`"):
        jaxobs.serve(port=0, max_events=3)


# ----------------------------------------------------------------------------------------------------- hosts


def test_hosts_that_are_allowed() -> None:
    """On loopback in addition to its names; on every interface instead of any name."""
    for addr in ("127.0.0.1", "0.0.0.0"):
        with serving(addr=addr, allowed_hosts=("train-0.svc", "[2001:db8::7]")) as handle:
            for host, status in (
                ("train-0.svc:9464", 200), ("TRAIN-0.svc", 200), ("localhost", 200), ("[2001:db8::7]:9464", 200),
                ("evil.example", 403), ("train-0.svc.evil.example", 403),
            ):  # fmt: skip
                assert ask(handle, "/healthz", Host=host)[0].status == status, host


# ----------------------------------------------------------------------------------------------- our own clients


@pytest.fixture
def protected(authority: Authority, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handle]:
    """An endpoint with everything, and the variables by which commands get in."""
    own = authority.sign("client")
    monkeypatch.setenv("JAXOBS_READ_TOKEN", TOKEN)
    monkeypatch.setenv("JAXOBS_ENDPOINT_CA", str(authority.certificate))
    monkeypatch.setenv("JAXOBS_ENDPOINT_CERTIFICATE", str(own.certificate))
    monkeypatch.setenv("JAXOBS_ENDPOINT_KEY", str(own.key))
    with serving(**tls(pair, tls_client_ca=str(authority.certificate), read_token=TOKEN)) as handle:
        yield handle


def test_commands_read_a_protected_endpoint(protected: Handle, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", protected.url]) == 0
    assert "train.step" in capsys.readouterr().out
    assert main(["explain", "--json", protected.url]) in (0, 1)
    assert json.loads(capsys.readouterr().out)
    observations, source = targets.read(protected.url, 10.0, Asked())
    assert source.problem is None and source.notes == ()
    assert observations


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("JAXOBS_READ_TOKEN", None, "It wants a token: set `JAXOBS_READ_TOKEN`"),
        ("JAXOBS_READ_TOKEN", "another", "The token in `JAXOBS_READ_TOKEN` is not that of the process"),
        ("JAXOBS_ENDPOINT_CA", None, "Set `JAXOBS_ENDPOINT_CA` to a PEM file"),
        ("JAXOBS_ENDPOINT_CA", "/nowhere.pem", "`JAXOBS_ENDPOINT_CA` is '/nowhere.pem', which cannot be used: No such"),
        ("JAXOBS_ENDPOINT_CERTIFICATE", None, "It wants a certificate of the client"),
    ],
)
def test_commands_say_what_they_lack(
    protected: Handle, monkeypatch: pytest.MonkeyPatch, variable: str, value: str | None, complaint: str
) -> None:
    """The variable to set, and the file that cannot be used."""
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, value)
    with pytest.raises((client.EndpointUnreachableError, SettingError)) as caught:
        client.fetch_snapshot(protected.url.rstrip("/"))
    assert complaint in str(caught.value)


def test_a_token_goes_over_no_network_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    """To loopback and over HTTPS only, and never along with a redirect."""
    monkeypatch.setenv("JAXOBS_READ_TOKEN", TOKEN)
    for address, shown in (
        ("http://127.0.0.1:9464/metrics", True), ("http://localhost:1/", True), ("https://host:9464/", True),
        ("http://host:9464/", False),
        ("http://127.0.0.1.evil.example/", False), ("http://localhost.evil.example/", False),
    ):  # fmt: skip
        assert bool(access.request(address).unredirected_hdrs) is shown, address
        assert access.request(address).headers == {}


def test_targets_of_a_job_are_scraped_by_https(pair: Pair) -> None:
    """`/api/v1/targets` says so where the endpoint has a certificate."""
    store = full_store()
    with serving(store, **tls(pair)):
        assert store.part(Addresses).scheme == "https"
    assert _group(0, Address("h", "h:1"), "https")["labels"]["__scheme__"] == "https"
    assert "__scheme__" not in _group(0, Address("h", "h:1"), "http")["labels"]
