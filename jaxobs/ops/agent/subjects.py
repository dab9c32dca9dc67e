"""Subject of an incident: a job of one namespace and cluster, as the labels of its alerts say."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jaxobs.ops.monitoring.promql import GROUPING

MOST_SLUG = 40
_NOT_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Subject:
    """The labels that all alerts of an incident share. Their values come from outside."""

    labels: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Subject:
        """Returns the job of an alert's labels; the process, if they name no job; else the alert's name."""
        found = {name: labels[name] for name in GROUPING if labels.get(name)}
        if "job" not in found and labels.get("instance"):
            found["instance"] = labels["instance"]
        if not {"job", "instance"} & found.keys():
            found["alertname"] = labels.get("alertname", "")
        return cls(tuple(sorted(found.items())))

    @property
    def scope(self) -> dict[str, str]:
        """The labels that the series of this subject have."""
        return {name: value for name, value in self.labels if name != "alertname"}

    @property
    def is_known(self) -> bool:
        """Whether the labels say whose series to look at."""
        return bool({"job", "instance"} & dict(self.labels).keys())

    @property
    def name(self) -> str:
        """Name for people: `train`, `train in namespace ml`."""
        own = dict(self.labels)
        first = own.get("job") or own.get("instance") or own.get("alertname") or "an unnamed alert"
        places = [f"{name} {own[name]}" for name in ("namespace", "cluster") if name in own]
        return f"{first} in {', '.join(places)}" if places else first

    @property
    def key(self) -> str:
        """Hash of the labels."""
        return hashlib.sha256(json.dumps(self.labels).encode(errors="surrogatepass")).hexdigest()[:12]

    @property
    def tag(self) -> str:
        """End of the ids of its incidents."""
        return f"{self.slug}-{self.key[:6]}"

    @property
    def slug(self) -> str:
        """Part of a file's name, whatever the labels are."""
        own = dict(self.labels)
        text = own.get("job") or own.get("instance") or own.get("alertname") or ""
        return _NOT_SLUG.sub("-", text.lower())[:MOST_SLUG].strip("-") or "incident"
