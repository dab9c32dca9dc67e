"""Prometheus' and Alertmanager's own configurations: for those who run them without Kubernetes."""

from typing import Any
from urllib.parse import urlsplit

from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.deploying import kubernetes
from jaxobs.ops.monitoring.site import RECEIVERS, WATCHDOG, Site

Config = dict[str, Any]

STORES = {
    "mimir": "http://mimir:9009/api/v1/push",
    "thanos": "http://thanos-receive:19291/api/v1/receive",
    "victoriametrics": "http://victoria-metrics:8428/api/v1/write",
}
"""Addresses to which Prometheus writes, by long-term store."""

TARGETS = [
    {
        "targets": ["host-0:9464", "host-1:9464", "host-2:9464", "host-3:9464"],
        "labels": {"job": "train", "jax_end": "removed"},
    }
]
"""An example of what file_sd reads: the processes of one job, whose launcher removes the file at the job's end.

Replace the file in one step, as `mv` does."""


FULL, FAILED = "JaxEventLogDiskFull", "JaxobsInternalErrors"
AGENT = "jaxobs-agent"
"""Receiver that is `jaxobs agent`."""
NO_DESTINATION: Config = {"webhook_configs": [{"url": "name-a-destination-in-receivers-of-the-site-file:"}]}
"""Destination that Alertmanager refuses, with its text in the error."""


def prometheus(site: Site, store: str | None = None) -> Config:
    """Returns a configuration that finds the processes of jobs, evaluates the rules and tells Alertmanager.

    Args:
      store: one of `STORES`, to write everything there as well.
    """
    config = kubernetes.read("prometheus")
    config["global"]["scrape_interval"] = site.scrape_interval
    if site.agent_url:
        address = urlsplit(site.agent_url)
        of_agent = {"job_name": AGENT, "scheme": address.scheme, "static_configs": [{"targets": [address.netloc]}]}
        config["scrape_configs"].append(of_agent)
    if store is not None:
        config["global"]["external_labels"] = {"prometheus": "jax-0"}
        queue = {"capacity": 20_000, "max_shards": 10, "max_samples_per_send": 5_000}
        config["remote_write"] = [{"url": STORES[store], "queue_config": queue}]
    return config


def alertmanager(site: Site) -> Config:
    """Returns a configuration that routes by severity, and inhibits alerts with a known reason.

    `critical` pages, `warning` opens a ticket, `info` goes nowhere; the agent gets pages and tickets as well. A ticket
    waits for the page of the same fault, which takes its place.
    Alertmanager refuses the file until the site has said where these go: it would drop them without a word.
    """
    job = list(site.grouping)
    found = {alert.name: alert for alert in alerting.enabled(site)}
    same = {name: [each for each in alert.inhibits if each in found] for name, alert in found.items()}
    down = "|".join(["JaxTargetDown", *(name for name, targets in same.items() if "JaxTargetDown" in targets)])
    agent = {
        "receiver": AGENT, "matchers": ['severity=~"critical|warning"'], "group_wait": "5s", "continue": True,
    }  # fmt: skip
    dog = {"receiver": WATCHDOG, "matchers": [f'alertname="{alerting.ALWAYS}"'], "repeat_interval": "5m"}
    webhook = {"url": f"{site.agent_url}/webhook", "send_resolved": True}
    return {
        "route": {
            "receiver": "tickets",
            "group_by": ["alertname", *site.grouping],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
            "routes": [
                *([dog] if WATCHDOG in site.receivers else []),
                *([agent] if site.agent_url else []),
                {"receiver": "nowhere", "matchers": ['severity="info"']},
                {"receiver": "pager", "matchers": ['severity="critical"'], "repeat_interval": "1h"},
                # Alertmanager uses the root's receiver only for what matches no route, and the agent's matches.
                {"receiver": "tickets", "group_wait": "10m"},
            ],
        },
        "inhibit_rules": [
            # While a deployment is under way, compilations are what one expects.
            _inhibit(['alertname="JaxDeploymentUnderWay"'], ['phase="compile"'], job),
            # A process that is gone explains what is missing of it, but not what explains that it is gone.
            _inhibit(['alertname="JaxTargetDown"'], ['alertname=~"Jax.+"', f'alertname!~"{down}"'], [*job, "instance"]),
            # One fault, one notification: alerts with one mechanism, of which the first to fire is told. Of an
            # objective only the page, since its tickets stay for days.
            *(
                _inhibit(
                    [f'alertname="{name}"', *(['severity="critical"'] if "slo" in found[name].expr else [])],
                    [f'alertname=~"{"|".join(targets)}"'],
                    job,
                )
                for name, targets in same.items()
                if targets
            ),
            # A log that cannot be written is one fault, whoever counts it.
            *(
                [_inhibit([f'alertname="{FULL}"'], [f'alertname="{FAILED}"', 'where="event_log"'], [*job, "instance"])]
                if {FULL, FAILED} <= found.keys()
                else []
            ),
            # A page makes the ticket of the same thing unnecessary.
            _inhibit(['severity="critical"'], ['severity="warning"'], ["alertname", *job, "instance", "slo"]),
        ],
        "receivers": [
            *([{"name": AGENT, "webhook_configs": [webhook]}] if site.agent_url else []),
            *({"name": name, **(site.receivers.get(name) or NO_DESTINATION)} for name in RECEIVERS),
            *({"name": name, **given} for name, given in site.receivers.items() if name == WATCHDOG),
            {"name": "nowhere"},
        ],
    }


def _inhibit(sources: list[str], targets: list[str], equal: list[str]) -> Config:
    return {"source_matchers": sources, "target_matchers": targets, "equal": equal}
