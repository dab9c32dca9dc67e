"""Dashboards: each is a YAML file in this folder, named like the dashboard, with the fields of `panel_types.Board`.

The annotations in `annotations.toml` are on all of them.
"""

import functools
import tomllib
from importlib import resources

from jaxobs.base.errors import MissingExtraError
from jaxobs.ops.monitoring.panel_types import Board


@functools.cache
def boards() -> tuple[Board, ...]:
    """Returns all dashboards, by name.

    Raises:
      MissingExtraError: PyYAML or pydantic is not installed.
      ValueError: a file has a field that `Board` lacks, or a value of another type; the message names both.
    """
    try:
        import pydantic
        import yaml
    except ImportError as error:
        raise MissingExtraError("jaxobs generate dashboards", str(error.name), "grafana") from error
    every = tomllib.loads((resources.files(__package__) / "annotations.toml").read_text(encoding="utf-8"))["every"]
    loader, adapter, found = getattr(yaml, "CSafeLoader", yaml.SafeLoader), pydantic.TypeAdapter(Board), []
    for file in sorted(resources.files(__package__).iterdir(), key=lambda file: file.name):
        name, _, ending = file.name.partition(".")
        if ending == "yaml":
            body = yaml.load(file.read_text(encoding="utf-8"), Loader=loader)
            body["annotations"] = [*body.get("annotations", ()), *every]
            try:
                found.append(adapter.validate_python({"name": name, **body}))
            except pydantic.ValidationError as error:
                raise ValueError(f"{file.name}: {error}") from error
    return tuple(found)
