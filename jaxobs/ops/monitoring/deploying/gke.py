"""Objects of Google Cloud's managed Prometheus (monitoring.googleapis.com/v1), which has its own operator.

It differs from prometheus-operator in what matters here: `job` is the name of the object that selects the pods and
cannot be relabelled, so each workload has an object of its own; pods that have ended are not targets; and rules know no
`keep_firing_for`.
"""

from jaxobs.ops.monitoring.deploying.kubernetes import LABELS, NAME_LABEL, Object, read
from jaxobs.ops.monitoring.site import Site

API = "monitoring.googleapis.com/v1"
EXAMPLES = ("serve", "train")
"""Workloads for which an object is written; replace them by those of the site."""
_TAKEN = ("record", "alert", "expr", "for", "labels", "annotations")
"""Fields of a rule."""


def pod_monitoring(workload: str, site: Site) -> Object:
    """Returns the object that scrapes the pods of one workload, in all namespaces.

    Args:
      workload: the value of the pods' label `app.kubernetes.io/name`; it becomes `job`.
    """
    found = read("clusterpodmonitoring")
    found["metadata"]["name"] = found["spec"]["selector"]["matchLabels"][NAME_LABEL] = workload
    found["spec"]["endpoints"][0]["interval"] = site.scrape_interval
    return found


def rules(groups: list[Object]) -> Object:
    """Returns the rules as the object for a whole cluster."""
    return {
        "apiVersion": API,
        "kind": "ClusterRules",
        "metadata": {"name": "jaxobs", "labels": LABELS},
        "spec": rule_groups(groups),
    }


def rule_groups(groups: list[Object]) -> Object:
    """Returns the groups without the fields that this operator does not know."""
    taken = [[{name: rule[name] for name in rule if name in _TAKEN} for rule in each["rules"]] for each in groups]
    return {"groups": [{**each, "rules": rules} for each, rules in zip(groups, taken, strict=True)]}
