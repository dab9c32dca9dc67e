"""Builds the chart and the bases, applies them to a real API server, and runs the real operator and Prometheus on them.

python -m tools.cluster                    builds the servers with Go the first time: a quarter of an hour
python -m tools.cluster --crds FOLDER      with further CRDs, as those of GKE's managed Prometheus

It needs Go, openssl and amtool; where there is a kubectl, it does what the docs say with it.
It is not in CI: building the API server alone takes minutes.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tools.cluster import agent, scraping
from tools.cluster.api import BUILT, ROOT, Cluster, Object, RefusedError, wait

DEPLOY = ROOT / "build" / "deploy"
NAMESPACES = (scraping.OPERATED, "research", "products", "by-kubectl")
VALUES = {
    "scaledObject": {"enabled": True},
    "alertmanagerConfig": {
        "enabled": True,
        "receivers": [
            {"name": "pager", "webhookConfigs": [{"url": "http://127.0.0.1:1/page"}]},
            {"name": "tickets", "webhookConfigs": [{"url": "http://127.0.0.1:1/ticket"}]},
            {"name": "nowhere"},
        ],
    },
}
WRONG: tuple[tuple[str, tuple[str | int, ...], Any], ...] = (
    ("podmonitor", ("spec", "namespaceSelectors"), {"any": True}),
    ("prometheusrule", ("spec", "groups", 0, "rules", 0, "expression"), "1"),
    ("alertmanagerconfig", ("spec", "route", "group_by"), ["job"]),
    ("autoscaler", ("spec", "maxReplicas"), 0),
)
"""Mistakes that the server must refuse: file, place, value."""


class Loader(yaml.CSafeLoader):
    """Reads `=` as a text."""


Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)


def main() -> int:
    """Exit code 0: all of it worked."""
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description=__doc__.split("\n")[0])
    parser.add_argument("--crds", type=Path, action="append", default=[], metavar="FOLDER", help="further CRDs")
    more = parser.parse_args().crds
    names = ("crds", "etcd", "kube-apiserver", "prometheus-operator", "prometheus", "helm")
    subprocess.run([str(ROOT / "tools" / "linters"), *names], check=True)
    build = [sys.executable, "-m", "jaxobs", "generate", "kubernetes", "--out", str(ROOT / "build")]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)).running() as cluster:
        print(f"a Kubernetes {cluster.get('/version')['gitVersion']} API server runs")
        _install_crds(cluster, more)
        for name in NAMESPACES:
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, "")
        _apply_all(cluster)
        _refuse(cluster)
        _kubectl(cluster)
        _helm(cluster, "install")
        _helm(cluster, "upgrade")
        _scrape(cluster)
        _agent(cluster)
        subprocess.run(
            [str(BUILT / "helm"), "uninstall", "jaxobs", "--namespace", scraping.OPERATED],
            check=True, capture_output=True, env=_environment(cluster),
        )  # fmt: skip
        left = cluster.get(f"/apis/monitoring.coreos.com/v1/namespaces/{scraping.OPERATED}/podmonitors")["items"]
        _check(not left, "helm uninstall removes what it installed", left)
    return 0


def _check(holds: bool, what: str, otherwise: object = "") -> None:
    if not holds:
        raise SystemExit(f"FAILED: {what}: {otherwise}")
    print(f"ok: {what}", flush=True)


def _environment(cluster: Cluster) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HELM_CACHE_HOME": str(cluster.folder / "helm")}


def _install_crds(cluster: Cluster, more: list[Path]) -> None:
    """Installs the CRDs of all that prometheus-operator watches, KEDA's, and further ones."""
    told = subprocess.run(
        ["go", "-C", str(ROOT / "tools/go/crds"), "mod", "download", "-json",
         "github.com/prometheus-operator/prometheus-operator"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    folders = [
        Path(json.loads(told.stdout)["Dir"]) / "example" / "prometheus-operator-crd",
        BUILT.parent / "crds",
        *more,
    ]
    files = {path.name: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
    found = [yaml.load(path.read_text(), Loader=Loader) for path in files.values()]
    crds = [each for each in found if each["kind"] == "CustomResourceDefinition"]
    for crd in crds:
        cluster.apply(crd, "")
    for crd in crds:
        wait(lambda crd=crd: _established(cluster, crd), f"{crd['metadata']['name']} to be served", 60)
    print(f"{len(crds)} CRDs are served")


def _established(cluster: Cluster, crd: Object) -> bool:
    conditions = cluster.get(cluster.path(crd, "")).get("status", {}).get("conditions", [])
    if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
        return False
    spec = crd["spec"]
    return cluster.knows(
        {"apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}", "kind": spec["names"]["kind"]}
    )


def _generated() -> dict[str, Object]:
    """Returns the built objects by path."""
    found = {}
    for folder in ("kubernetes", "gke"):
        for path in sorted((DEPLOY / folder).rglob("*.yaml")):
            document = yaml.load(path.read_text(), Loader=Loader)
            if "metadata" in document:
                found[str(path.relative_to(DEPLOY))] = document
    return found


def _apply_all(cluster: Cluster) -> None:
    """Each object is taken with strict validation, nothing of it is lost, and a second time changes nothing."""
    counts: dict[str, int] = {}
    for path, given in _generated().items():
        if not cluster.knows(given):
            print(f"not tried: {path}: the server has no {given['kind']}")
            continue
        there = cluster.apply(given, scraping.OPERATED)
        lost = _lost(given, there, "")
        _check(not lost, f"{path} is applied whole", lost)
        again = cluster.apply(given, scraping.OPERATED)
        _check(again["metadata"]["resourceVersion"] == there["metadata"]["resourceVersion"], f"{path} stays as it is")
        counts[given["kind"]] = counts.get(given["kind"], 0) + 1
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    for given in _generated().values():
        if cluster.knows(given):
            cluster.delete(given, scraping.OPERATED)


def _lost(given: Any, there: Any, at: str) -> list[str]:
    """Places whose value the server has not, or has changed."""
    if isinstance(given, dict) and isinstance(there, dict):
        return [lost for key, value in given.items() for lost in _lost(value, there.get(key), f"{at}.{key}")]
    if isinstance(given, list) and isinstance(there, list) and len(given) == len(there):
        return [lost for n, value in enumerate(given) for lost in _lost(value, there[n], f"{at}[{n}]")]
    return [] if given == there else [at]


def _refuse(cluster: Cluster) -> None:
    for name, path, value in WRONG:
        faulty = copy.deepcopy(_generated()[f"kubernetes/{name}.yaml"])
        place: Any = faulty
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        try:
            cluster.apply(faulty, scraping.OPERATED)
        except RefusedError as error:
            _check(str(path[-1]) in str(error), f"a wrong {path[-1]} in {name} is refused", error)
        else:
            _check(False, f"a wrong {path[-1]} in {name} is refused")


def _kubectl(cluster: Cluster) -> None:
    """The command of the docs."""
    if shutil.which("kubectl") is None:
        print("not tried: there is no kubectl")
        return
    for _ in range(2):
        done = subprocess.run(
            ["kubectl", "apply", "--server-side", "-n", "by-kubectl", "-k", str(DEPLOY / "kubernetes")],
            capture_output=True, text=True, env=_environment(cluster), check=False,
        )  # fmt: skip
        _check(done.returncode == 0, f"kubectl apply -k: {len(done.stdout.splitlines())} objects", done.stderr)
    # Its PodMonitor would find the same pods as the chart's.
    subprocess.run(
        ["kubectl", "delete", "-n", "by-kubectl", "-k", str(DEPLOY / "kubernetes")],
        capture_output=True, check=True, env=_environment(cluster),
    )  # fmt: skip


def _agent(cluster: Cluster) -> None:
    """The agent, with the rights that its base gives it."""
    found, told = agent.found(cluster, DEPLOY / "kubernetes" / "agent-reading-cluster")
    causes = [(each.id, each.component) for each in found.causes]
    _check(causes == [("host_out_of_memory", "10.0.0.7:9464")], "the agent sees whose container passed its limit", told)
    changed = [what for _, what in told.changes]
    image = "example.org/own"
    _check(changed == [f"gpt: revision 1 -> 2 ({image}:1 -> {image}:2)"], "the agent sees the revision before", told)
    _check(not told.notes, f"the agent may read all that it asks for: {told.looked_at}", told.notes)
    _check(agent.refused(cluster), "the agent may not read Secrets or logs, and may change nothing")


def _helm(cluster: Cluster, command: str) -> None:
    """The chart with all that is optional."""
    values = cluster.folder / "values.json"
    values.write_text(json.dumps(VALUES))
    done = subprocess.run(
        [str(BUILT / "helm"), command, "jaxobs", str(DEPLOY / "helm" / "jaxobs"), "--namespace", scraping.OPERATED,
         "--values", str(values)],
        capture_output=True, text=True, env=_environment(cluster), check=False,
    )  # fmt: skip
    _check(done.returncode == 0 and "STATUS: deployed" in done.stdout, f"helm {command}", done.stderr)


def _scrape(cluster: Cluster) -> None:
    """Checks which pods a Prometheus finds with the configuration that the operator makes of the chart's objects."""
    with scraping.operator(cluster), scraping.pods(cluster):
        text = scraping.secret(cluster, "prometheus-main", "prometheus.yaml.gz", f"{scraping.OPERATED}/jaxobs/0")
        config = scraping.configuration(cluster, text, cluster.folder / "prometheus")
        found = scraping.seen(cluster, config)
        _check(found == scraping.WANTED, "Prometheus scrapes the pods of other namespaces, each with its job", found)
        _route(cluster)


def _route(cluster: Cluster) -> None:
    """Alertmanager's configuration, as the operator writes it, sends a page to the pager."""
    text = scraping.secret(cluster, "alertmanager-main-generated", "alertmanager.yaml.gz", "jaxobs/pager")
    path = cluster.folder / "alertmanager.yaml"
    path.write_text(text)
    for severity, receiver in (("critical", "pager"), ("warning", "tickets"), ("info", "nowhere")):
        done = subprocess.run(
            ["amtool", "config", "routes", "test", f"--config.file={path}", f"severity={severity}", "alertname=JaxX",
             "namespace=research"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        wanted = f"{scraping.OPERATED}/jaxobs/{receiver}"
        _check(done.stdout.strip() == wanted, f"Alertmanager sends {severity} to {receiver}", done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(main())
