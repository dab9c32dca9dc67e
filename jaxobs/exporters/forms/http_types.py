"""Requests, responses and routes, by which an exporter answers HTTP without knowing the server."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request, as far as anybody here cares."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    """First value of each parameter."""
    accept: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A body with its type; the server compresses it where the client accepts that."""

    body: bytes
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()
    status: str = "200 OK"


Route = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class Post:
    """A POST request, with what tells who sent it."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    """First value of each parameter."""
    body: bytes = b""
    content_type: str | None = None
    is_own: bool = True
    """Whether no web page sent it, or a page of the host that it asks."""
    authorization: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A thing that a client accepts: `text/plain;version=0.0.4;q=0.3`."""

    name: str
    parameters: Mapping[str, str]
    quality: float


def accepted(header: str | None) -> list[Accepted]:
    """Returns what an `Accept` or `Accept-Encoding` header lists, in its order, without what makes no sense in it."""
    found = []
    for part in (header or "").split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        parameters = {
            key.strip().lower(): value.strip().strip('"') for key, _, value in (p.partition("=") for p in rest)
        }
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            continue
        if name:
            found.append(Accepted(name.lower(), parameters, quality))
    return found


class BadRequest(ValueError):  # noqa: N818 - the name of the HTTP status
    """The request cannot be answered; the message says why and what would be right."""


def json_response(value: Any, status: str = "200 OK") -> Response:
    """A value as JSON; infinities and not-a-numbers must have been replaced before."""
    return Response(json.dumps(value, allow_nan=False).encode(), "application/json", status=status)


def problem(status: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A refusal, with a sentence for a person."""
    body = json_response({"error": message})
    return Response(body.body + b"\n", body.content_type, headers, status)
