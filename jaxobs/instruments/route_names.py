"""Name of a request's route: the framework's own template if it says one, else the path with ids left out.

Strangers choose paths, so that a path by itself would make series without end.
"""

import re
from collections.abc import Mapping
from typing import Any

UNMATCHED = "<unmatched>"
"""Paths that nobody serves: answered with 404 or 405, and no route of the framework was reported."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_ID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F-]{8,}|[0-9a-fA-F]{16,}|(?=[^/]*\d)[\w~.%-]{20,}")


def collapsed(path: str) -> str:
    """The path with numbers and ids replaced: `/models/7/runs/0b5cbc2e-...` is `/models/{number}/runs/{id}`."""
    return "/".join(_collapsed(part) for part in path.split("/")) or "/"


def _collapsed(part: str) -> str:
    if _NUMBER.fullmatch(part):
        return "{number}"
    return "{id}" if _ID.fullmatch(part) else part


def of_asgi(scope: Mapping[str, Any], path: str, root: str, status: int | None) -> str:
    """The route of an ASGI request that has been answered.

    Args:
      scope: as the framework left it. FastAPI puts its `route` there, Litestar its `path_template`, Starlette the
        values of the parameters.
      path: of the request, as it came in.
      root: `root_path` of the request, as it came in.
      status: of the answer.
    """
    for template in (_template(scope.get("route")), scope.get("path_template")):
        if isinstance(template, str):
            return _mounted_at(scope, path, root) + template
    parameters = scope.get("path_params")
    if parameters and isinstance(parameters, Mapping):
        return collapsed(_parameters_left_out(path, parameters))
    return UNMATCHED if status in (404, 405) and not scope.get("endpoint") else collapsed(path)


def of_wsgi(environ: Mapping[str, Any], path: str, status: int | None) -> str:
    """The route of a WSGI request that has been answered: Flask's or Bottle's rule, else its path."""
    request = environ.get("werkzeug.request")
    for rule in (getattr(request, "url_rule", None), environ.get("bottle.route")):
        template = getattr(rule, "rule", None)
        if isinstance(template, str):
            return template
    return UNMATCHED if status in (404, 405) else collapsed(path)


def _template(route: object) -> str | None:
    for name in ("path_format", "path"):
        found = getattr(route, name, None)
        if isinstance(found, str):
            return found
    return None


def _mounted_at(scope: Mapping[str, Any], path: str, root: str) -> str:
    """Returns the path at which the route's application is mounted in the one that was asked."""
    now = str(scope.get("root_path") or "")
    prefix = now[len(root) :] if now.startswith(root) else ""
    if not prefix or not path.startswith((prefix, now)):
        return ""
    return _parameters_left_out(prefix, scope.get("path_params") or {})


def _parameters_left_out(path: str, parameters: Mapping[str, Any]) -> str:
    """The path with the values of its parameters replaced by their names, the longest values first."""
    for name, value in sorted(parameters.items(), key=lambda each: -len(str(each[1]))):
        text = str(value).strip("/")
        if text:
            path = re.sub(rf"(?<=/){re.escape(text)}(?=/|$)", lambda _, name=name: f"{{{name}}}", path, count=1)  # type: ignore[misc]
    return path
