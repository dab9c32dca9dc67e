"""Objects of Kubernetes against the schemas of their operators, as strictly as `kubectl apply --validate=strict`.

An API server drops a field that the schema does not have, and says nothing by default: here it is a mistake.
"""

from __future__ import annotations

import functools
from typing import Any

import jsonschema
import yaml

from helpers import requirements


class Loader(yaml.CSafeLoader):
    """Reads `=` as a text: YAML 1.1 has another meaning for it, which nobody uses."""


Loader.add_constructor("tag:yaml.org,2002:value", Loader.construct_yaml_str)


@functools.cache
def schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """The schema of each version of each kind."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in requirements.crds():
        crd = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)["spec"]
        for version in crd["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            del schema["properties"]["metadata"]
            found[f"{crd['group']}/{version['name']}", crd["names"]["kind"]] = _closed(schema)
    return found


def mistakes(given: dict[str, Any]) -> list[str]:
    """Yields place and sentence of what the schema of its kind has against an object."""
    schema = schemas()[given["apiVersion"], given["kind"]]
    document = {key: value for key, value in given.items() if key != "metadata"}
    found = jsonschema.Draft4Validator(schema).iter_errors(document)
    return [f"{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in found]


def _closed(schema: Any) -> Any:
    """A schema that takes no field that it does not name, and a number or a text where Kubernetes takes either."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: {name: _closed(each) for name, each in value.items()} if key == "properties" else _closed(value)
        for key, value in schema.items()
        if key != "default"
    }
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if "properties" in schema and not open_ended:
        found["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
    return found
