"""Processes that answer with given bytes."""

from __future__ import annotations

import contextlib
import io
import shutil
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class AnsweringOpener:
    """Stands for the opener of `jaxobs.views.access`."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self._answers = answers

    @contextlib.contextmanager
    def open(self, request: urllib.request.Request, timeout: float) -> Iterator[io.BytesIO]:
        """The answer for the path of a request."""
        yield io.BytesIO(self._answers["snapshot.json" if "snapshot" in request.full_url else "events.json"])


class Server(ThreadingHTTPServer):
    """Answers by parts of paths, and one of them with a file."""

    daemon_threads = True

    def __init__(self, answers: Mapping[str, bytes], asked: str = "", path: Path = Path("/dev/null")) -> None:
        """Serves until it is closed.

        Args:
          asked: the part of a path whose answer is the file; empty for none.
        """
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.asked, self.path, self.was_asked = answers, asked, path, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Says nothing of a reader that has read enough and closes the connection."""

    def server_close(self) -> None:
        """Ends the thread, too."""
        self.shutdown()
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        """Answers."""
        server, path = self.server, self.path.partition("?")[0]
        if server.asked and server.asked in path:
            server.was_asked.set()
            self._begin(200, server.path.stat().st_size)
            with server.path.open("rb") as file:
                shutil.copyfileobj(file, self.wfile)
            return
        body = next((body for part, body in server.answers.items() if part in path), None)
        self._begin(404 if body is None else 200, len(body or b""))
        self.wfile.write(body or b"")

    def do_POST(self) -> None:
        """Answers likewise."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _begin(self, code: int, size: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(size))
        self.end_headers()
