"""The process-wide calls: `install`, `serve`, `start` and their ends, by hand, at exit and in forked children.

`install` may come before JAX is imported: what touches JAX begins when the program imports it.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from jaxobs.base import config, notebooks, threads
from jaxobs.base.config import Settings
from jaxobs.base.errors import JaxobsError, PortTakenError, SettingError
from jaxobs.base.guard import guard, guarded
from jaxobs.exporters.otel import providers
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.verdict import judged
from jaxobs.internals import code_events
from jaxobs.session.observation import Session
from jaxobs.state import store
from jaxobs.web import endpoints

if TYPE_CHECKING:
    from typing import Unpack

    from jaxobs.base.settings_types import InstallSettings, ProtectionTypes
    from jaxobs.web.server import Handle


_session: Session | None = None
_handles: list[Handle] = []
_lock = threads.RLock()
_ended_by: BaseException | None = None
"""How a worker of `multiprocessing` ends: from Python 3.13 on, its finalizers run when the exception is over."""


def install(**settings: Unpack[InstallSettings]) -> None:
    """Sees every compilation of this process from now on, and finds the loops of a program that declares none.

    It replaces no function. Finding loops takes at most 0.2 % of the time, and nothing where the setting `find_loops`
    is off or the program declares its steps.

    Idempotent. May be called before JAX is imported. `jaxobs run --help` lists the settings; each has a
    variable `JAXOBS_<NAME>` too. A second call with other settings puts them in force.

    A variable that does not fit, or names a file that cannot be written, is ignored with a warning.

    With `meter_provider`, `tracer_provider` or `logger_provider`, metrics, traces and findings also go to these
    providers of OpenTelemetry. They are objects of the program, so that no variable stands for them.

    Raises:
      SettingError: a keyword is unknown, its value does not fit, or a file that it names cannot be written.
    """
    global _session
    if config.disabled():
        return
    with _lock:
        given, handed_in = _hand_in(settings)
        if _session is None:
            resolved = config.resolve(given, complain=_warn)
            _instrument_later(resolved, given)
            session = Session(resolved, _at_exit_of_worker, given)
            session.start()
            _session = session
            _at_exit()
            _protect_all(resolved, given)
        elif given or handed_in:
            resolved = config.resolve(given, complain=_warn)
            changed = dataclasses.replace(_session.settings, **{name: getattr(resolved, name) for name in given})
            _instrument_later(changed, given)
            before, _session.given = _session.given, _session.given | set(given)
            if changed != _session.settings or handed_in:
                try:
                    _session.reconfigure(changed)
                    _protect_all(changed, given)
                except JaxobsError:
                    _session.given = before
                    raise


def _hand_in(settings: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Gives OpenTelemetry's providers to the exporter; returns the settings, and whether there was a provider."""
    given = {name: value for name, value in settings.items() if value is not None}
    found = {signal: given.pop(f"{signal}_provider", None) for signal in ("meter", "tracer", "logger")}
    for signal, provider in found.items():
        if f"{signal}_provider" in settings:
            setattr(providers.given, signal, provider)
    return given, any(provider is not None for provider in found.values())


def forget_providers() -> None:
    """Uses none of the providers that were handed in any more."""
    providers.given.meter = providers.given.tracer = providers.given.logger = None


def install_in_child(settings: Mapping[str, Any], program: str | None) -> None:
    """Installs as `install` in a new interpreter, silent until it uses JAX, and without a metrics file."""
    global _session
    with _lock:
        if _session is None:
            resolved = dataclasses.replace(config.resolve(settings), metrics_file=None)
            _instrument_later(resolved, settings)
            session = Session(resolved, _at_exit_of_worker)
            session.store.program = program
            session.start_in_child()
            _session = session
            _at_exit()


_instrumented: set[str] = set()


def _warn(sentence: str) -> None:
    store.current().warn(sentence)


def _instrument_later(settings: Settings, given: Collection[str]) -> None:
    """Wraps the functions that the setting `instrument` names, when their modules are imported."""
    from jaxobs.instruments.instrumentation import instrument_when_imported

    for spec in settings.instrument:
        if spec not in _instrumented:
            try:
                instrument_when_imported(spec)
                _instrumented.add(spec)
            except SettingError as error:
                if "instrument" in given:
                    raise
                _warn(f"{error} It came from `{config.PREFIX}INSTRUMENT`, and is ignored.")


def uninstall() -> None:
    """Stops watching: removes our listeners, ends our thread and endpoints. What was recorded stays readable."""
    global _session
    with _lock:
        if _session is not None:
            session, _session = _session, None
            session.stop()
        while _handles:
            _handles.pop().close()


def serve(port: int | None = None, addr: str | None = None, **settings: Unpack[ProtectionTypes]) -> Handle | None:
    """Serves the live page, `/metrics` and the API in daemon threads.

    Args:
      port: 9464 unless given or set by `JAXOBS_PORT`; 0 takes a free one.
      addr: loopback unless given or set by `JAXOBS_ADDR`.
      **settings: those that protect the endpoint: `tls_certificate`, `tls_key`, `tls_client_ca`, `read_token`,
        `allowed_hosts`, `request_timeout`, `max_request_bytes`, `max_connections`.

    Returns:
      A handle with `.url`, `.port` and `.close()`; None when `JAXOBS_DISABLED` is set.

    Raises:
      PortTakenError: somebody listens there already; the message says what to do.
      SettingError: a value does not fit.
    """
    if config.disabled():
        return None
    with _lock:
        from jaxobs.web import server  # an HTTP server is dear to import, and not everybody serves

        foreign = sorted(set(settings) - set(config.PROTECTION))
        if foreign:
            raise SettingError(
                f"`serve` has no setting `{foreign[0]}`. Its settings: port, addr, {', '.join(config.PROTECTION)}."
            )
        resolved = _endpoint_settings({"port": port, "addr": addr, **settings})
        handle = server.serve(store.current(), resolved.port, resolved.addr, resolved)
        _announce(handle)
        _handles[:] = [*(each for each in _handles if not each.closed), handle]
        _at_exit()
        return handle


def _announce(handle: Handle) -> None:
    """Writes the file by which `jaxobs top` finds an endpoint."""
    with guarded("serve.announce"), contextlib.suppress(OSError):
        withdraw, closing = endpoints.announce(handle.url, handle.port, store.current().program), handle.closing
        handle.closing = lambda: (closing(), withdraw())[0]


def _protect_all(settings: Settings, given: Collection[str]) -> None:
    """Asks of the clients of every open endpoint what the settings that are given want, from now on."""
    changed = {name: getattr(settings, name) for name in config.PROTECTION if name in given}
    for handle in _handles:
        if changed and not handle.closed:
            url = handle.url
            handle.protect(dataclasses.replace(handle.settings, **changed))
            if handle.url != url:
                _announce(handle)


def _endpoint_settings(wanted: Mapping[str, Any]) -> Settings:
    given = {name: value for name, value in wanted.items() if value is not None}
    settings = config.resolve(given, complain=_warn)
    if _session is None:
        return settings
    return dataclasses.replace(_session.settings, **{name: getattr(settings, name) for name in given})


def start(**settings: Unpack[InstallSettings]) -> Handle | None:
    """Observes and serves: the one line in a training script. Prints where the page is.

    Where the port is taken, a warning says so and the next free one is served; `jaxobs top` finds it. A variable
    `JAXOBS_...` that does not fit is ignored with a warning.

    Returns:
      The endpoint's handle, the same one when called again; None when `JAXOBS_DISABLED` is set, or where what the
      variables and defaults say cannot be served.

    Raises:
      SettingError: as `install` and `serve`, for what is given by keyword.
    """
    if config.disabled():
        return None
    with _lock:
        install(**settings)
        port, addr = settings.get("port"), settings.get("addr")
        for handle in _handles:
            if not handle.closed and port in (None, 0, handle.port) and addr in (None, handle.addr):
                return handle
        found = _serve_somewhere(port, addr)
        if found is not None:
            tell(found)
        return found


MOST_PORTS = 16
"""Ports that are tried one after the other, before any free one is taken."""


def _serve_somewhere(port: int | None, addr: str | None) -> Handle | None:
    """Serves at the port, or the next free one; None if neither can be done and nobody asked for it by keyword."""
    given = _session.given if _session is not None else frozenset()
    asked = port is not None or addr is not None or bool(given & {"port", "addr", *config.PROTECTION})
    settings = _endpoint_settings({"port": port, "addr": addr})
    try:
        return _serve_from(settings.port, addr)
    except SettingError as error:
        if asked:
            raise
        _warn(f"{error} jaxobs serves at the default address instead.")
    try:
        return _serve_from(Settings().port, Settings().addr)
    except JaxobsError as error:
        _warn(f"{error} The program runs without the endpoint.")
        return None


def _serve_from(port: int, addr: str | None) -> Handle | None:
    ports = [port, *range(port + 1, min(port + MOST_PORTS, 65536)), 0] if port else [0]
    for candidate in ports[:-1]:
        try:
            handle = serve(candidate, addr)
        except PortTakenError:
            continue
        break
    else:
        handle = serve(0, addr)
    if handle is not None and port not in (0, handle.port):
        _warn(
            f"Port {port} is taken: this process serves {handle.url} instead. `jaxobs top` lists the endpoints on this "
            f"machine; `jaxobs.start(port=N)` and `{config.PREFIX}PORT=N` choose another port."
        )
    return handle


def tell(handle: Handle) -> None:
    """Prints where an endpoint is, once, to where errors go: the program's own output stays what it was."""
    if not handle.told:
        handle.told = True
        with contextlib.suppress(AttributeError, OSError, ValueError):  # there may be none, or it may be closed
            sys.stderr.write(f"jaxobs: {handle.url}\n")
            sys.stderr.flush()


def snapshot() -> Snapshot:
    """Returns the whole state at this moment, as frozen dataclasses."""
    _shown_well()
    return judged(store.current().snapshot())


def fresh_snapshot() -> Snapshot:
    """Returns a snapshot after a fresh sample, even if that is expensive."""
    if _session is not None:
        with guarded("sample"):
            _session.sample()
    return snapshot()


@guard("notebook.formatters")
def _shown_well() -> None:
    """Registers readable forms of snapshots and findings in IPython and Jupyter."""
    shell = notebooks.shell()
    if shell is not None:
        from jaxobs.views.notebook import formatters

        formatters.register(shell)


def hand_over(since: float) -> list[Callable[[], None]]:
    """Returns functions that the compiling thread calls: they hand over what this thread lowered since then."""
    with guarded("hand_over"):
        sources = [] if _session is None else _session.sources
        return [source.hand_over(since) for source in sources if hasattr(source, "hand_over")]
    return []


def finish(reason: str, detail: str | None = None, code: int | None = None) -> None:
    """Writes the last state, once: the `exit` event and the metrics file."""
    if _session is not None:
        _session.finish(reason, detail, code)


_registered = False


def _at_exit() -> None:
    """Registers the hooks of exit and fork, once for the life of the process."""
    global _registered
    if _registered:
        return
    _registered = True
    atexit.register(_exiting)
    _at_exit_of_worker()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def _at_exit_of_worker() -> None:
    """Registers a finalizer of `multiprocessing`, whose forked children end without exit handlers."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _exiting, exitpriority=0)
        work = process.BaseProcess._bootstrap.__code__

        def note(frame: FrameType, exit_code: Any = None) -> None:
            global _ended_by
            if frame.f_back is not None and frame.f_back.f_code is work:
                _ended_by = sys.exc_info()[1]
            elif exit_code:
                _ended_by = _ended_by or SystemExit(exit_code)

        code_events.watch(traceback.print_exc.__code__, note)
        code_events.watch(work, ended=note)


@guard("exit")
def _exiting() -> None:
    # At the interpreter's exit the uncaught exception is over; a worker's finalizers run while it is raised. At a
    # prompt, errors before the last line are no reason to exit.
    last = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    error = sys.exc_info()[1] or _ended_by or last
    if error is not None and _session is not None:
        _session.uncaught(error)
    if error is None:
        finish("normal")
    elif isinstance(error, SystemExit):
        finish("normal", code=0 if error.code is None else error.code if isinstance(error.code, int) else 1)
    else:
        finish("exception", type(error).__name__, 130 if isinstance(error, KeyboardInterrupt) else 1)
    for handle in _handles:
        with contextlib.suppress(OSError):
            handle.close()


@guard("fork")
def _forked() -> None:
    global _lock
    _lock = threads.RLock()
    while _handles:
        _handles.pop().forget()
    if _session is not None:
        _session.after_fork()
