"""A server on loopback that answers what a test wants."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any


class Request(str):
    """Path of a request, with its body and headers."""

    body: bytes
    headers: Mapping[str, str]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    request_queue_size = 64


@contextlib.contextmanager
def serving(answer: Callable[[Request], Any], port: int = 0, **headers: str) -> Iterator[str]:
    """The address of a server that answers each GET and POST with what `answer` gives.

    Args:
      answer: gives JSON, bytes or a status; all of status, bytes and headers; or None for an unknown path.
      headers: of each answer, with `_` for `-`.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = Request(self.path)
            asked.body, asked.headers = self.rfile.read(int(self.headers.get("Content-Length", 0))), self.headers
            found, more = answer(asked), headers
            status = found if isinstance(found, int) else 404 if found is None else 200
            if isinstance(found, tuple):
                status, found, more = found
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            kind = "text/html; charset=utf-8" if found is body else "application/json"
            with contextlib.suppress(OSError):  # who asked may have left
                self.send_response(status)
                for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None: ...

    with _Server(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
