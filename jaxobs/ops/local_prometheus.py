"""A Prometheus of your own: scrapes one endpoint each two seconds, and leaves nothing behind."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType

from jaxobs.base.errors import JaxobsError

PREFERRED_PORT = 9090
READY_WITHIN = 30.0
"""Seconds that Prometheus may take to start."""

_CONFIG = """\
global:
  scrape_interval: {seconds}s
  evaluation_interval: {seconds}s
scrape_configs:
  - job_name: jaxobs-demo
    scheme: {scheme}
    metrics_path: {path}
    static_configs:
      - targets: ["{target}"]
"""


class PrometheusError(JaxobsError):
    """No Prometheus is installed, or it did not start."""


def program() -> str:
    """Returns the path of the installed Prometheus; raises `PrometheusError` with how to get it."""
    found = shutil.which("prometheus")
    if found is None:
        raise PrometheusError(
            "`--prometheus` needs the program `prometheus`, which is not on the PATH. Debian and Ubuntu: "
            "`apt install prometheus`; macOS: `brew install prometheus`. Or leave `--prometheus` out."
        )
    return found


def free_port(preferred: int = PREFERRED_PORT) -> int:
    """Returns the preferred port of loopback if nobody listens on it, else one that the system picks."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise PrometheusError("`--prometheus` found no free port on 127.0.0.1. Close a program that listens there.")


class LocalPrometheus:
    """A running Prometheus on loopback that scrapes `metrics_url`; `close()` stops it and removes its data.

    Raises:
      PrometheusError: it is not installed, or does not get ready; the message holds the end of its log.
    """

    def __init__(self, metrics_url: str, *, scrape_seconds: int = 2) -> None:
        binary = program()
        self._folder = Path(tempfile.mkdtemp(prefix="jaxobs-prometheus-"))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            parts = urllib.parse.urlsplit(metrics_url)
            config = self._folder / "prometheus.yml"
            config.write_text(
                _CONFIG.format(seconds=scrape_seconds, scheme=parts.scheme, path=parts.path, target=parts.netloc)
            )
            self.url = f"http://127.0.0.1:{free_port()}"
            self._log = self._folder / "prometheus.log"
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [
                        binary,
                        f"--config.file={config}",
                        f"--storage.tsdb.path={self._folder / 'data'}",
                        f"--web.listen-address={urllib.parse.urlsplit(self.url).netloc}",
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C is for the demo, which then stops Prometheus itself.
                    start_new_session=True,
                )
            self._await_ready(binary)
        except BaseException:
            self.close()
            raise

    def _await_ready(self, binary: str) -> None:
        assert self._process is not None
        end = time.monotonic() + READY_WITHIN
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while time.monotonic() < end and self._process.poll() is None:
            try:
                opener.open(f"{self.url}/-/ready", timeout=2).close()
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
            else:
                return
        said = self._log.read_text(errors="replace").strip().splitlines()[-3:]
        raise PrometheusError(
            f"`{binary}` did not become ready at {self.url}. Its last output: {' | '.join(said) or 'none'}"
        )

    def graph_url(self, expression: str) -> str:
        """Returns the address of a graph of the expression over the last minutes."""
        query = urllib.parse.urlencode({"g0.expr": expression, "g0.tab": "0", "g0.range_input": "5m"})
        return f"{self.url}/graph?{query}"

    def close(self) -> None:
        """Stops Prometheus and removes its folder. Idempotent."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> LocalPrometheus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
