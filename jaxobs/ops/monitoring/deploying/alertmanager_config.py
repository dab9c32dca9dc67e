"""Alertmanager's routes and inhibitions as an object of prometheus-operator: AlertmanagerConfig (v1alpha1)."""

import json
import re
from typing import Any

from jaxobs.ops.monitoring.deploying import prometheus
from jaxobs.ops.monitoring.deploying.kubernetes import LABELS, Object
from jaxobs.ops.monitoring.site import Site

_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)(".*")')


AGENT = f"http://{prometheus.AGENT}:9465/webhook"
"""Address of the agent's Service in the namespace of Alertmanager."""
DESTINATIONS = "jaxobs-receivers"
"""Secret with the addresses of `pager`, `tickets` and `watchdog`: without it, prometheus-operator refuses it."""


def alertmanager_config(site: Site) -> Object:
    """Returns the routes and inhibitions of `prometheus.alertmanager` as an AlertmanagerConfig, with its receivers."""
    plain = prometheus.alertmanager(site)
    return {
        "apiVersion": "monitoring.coreos.com/v1alpha1",
        "kind": "AlertmanagerConfig",
        "metadata": {"name": "jaxobs", "labels": LABELS},
        "spec": {
            "route": _route(plain["route"]),
            "inhibitRules": [
                {
                    "sourceMatch": _matchers(each["source_matchers"]),
                    "targetMatch": _matchers(each["target_matchers"]),
                    "equal": each["equal"],
                }
                for each in plain["inhibit_rules"]
            ],
            "receivers": [_receiver(each["name"]) for each in plain["receivers"]],
        },
    }


def _receiver(name: str) -> Object:
    if name == prometheus.AGENT:
        token = {"type": "Bearer", "credentials": {"name": name, "key": "token"}}
        return {"name": name, "webhookConfigs": [{"url": AGENT, "httpConfig": {"authorization": token}}]}
    secret = {"name": DESTINATIONS, "key": name}
    return {"name": name, **({"webhookConfigs": [{"urlSecret": secret}]} if name != "nowhere" else {})}


def _route(plain: dict[str, Any]) -> Object:
    found: Object = {}
    for name, value in plain.items():
        if name == "matchers":
            found[name] = _matchers(value)
        elif name == "routes":
            found[name] = [_route(each) for each in value]
        else:
            found[_camel(name)] = value
    return found


def _matchers(texts: list[str]) -> list[Object]:
    found = []
    for text in texts:
        match = _MATCHER.fullmatch(text)
        if match is None:
            raise ValueError(f"not a matcher: {text}")
        found.append({"name": match[1], "matchType": match[2], "value": json.loads(match[3])})
    return found


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
