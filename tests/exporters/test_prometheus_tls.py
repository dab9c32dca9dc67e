"""A real Prometheus scrapes an endpoint with TLS and a token, by the configuration that the page shows."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from helpers.certificates import Authority
from helpers.paths import ROOT
from helpers.requirements import program
from helpers.waiting import until

from tools.ports import free_port

TOKEN = "f1d2d2f924e986ac86fdf7b36c94bcdf32beec15"
SCRIPT = """
import time, jax, jax.numpy as jnp
jax.jit(lambda x: jnp.sin(x) + 1)(jnp.zeros(3)).block_until_ready()
time.sleep(600)
"""


def shown() -> str:
    """The configuration on the page that has a token in it."""
    page = (ROOT / "docs" / "prometheus.md").read_text(encoding="utf-8")
    [found] = [each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "credentials_file" in each]
    return found


def asked(url: str, path: str, **query: str) -> Any:
    """Returns what Prometheus' API answers; None until it does."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=120) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


@pytest.mark.slow
def test_scrapes_over_tls_with_a_token(tmp_path: Path) -> None:
    """The series of a real program are there; with another token, Prometheus reports what the endpoint says: 401."""
    authority = Authority(tmp_path)
    pair = authority.sign("endpoint")
    for name, content in {"token": TOKEN, "wrong": "nonsense", "train.py": SCRIPT}.items():
        (tmp_path / name).write_text(content)
    port = free_port()
    config = shown().replace("/etc/prometheus/jaxobs-ca.crt", str(authority.certificate))
    config = config.replace("train-0.example.com:9464", f"127.0.0.1:{port}").replace("15s", "1s")
    good = config.replace("/etc/prometheus/jaxobs-token", str(tmp_path / "token"))
    bad = config.replace("/etc/prometheus/jaxobs-token", str(tmp_path / "wrong")).replace(": jax\n", ": wrong\n")
    assert str(tmp_path / "token") in good and f"127.0.0.1:{port}" in good
    (tmp_path / "prometheus.yml").write_text(good + bad.partition("\n")[2])
    environment = {
        **os.environ, "JAXOBS_ADDR": "0.0.0.0", "JAXOBS_TLS_CERTIFICATE": str(pair.certificate),
        "JAXOBS_TLS_KEY": str(pair.key), "JAXOBS_READ_TOKEN": TOKEN, "JAXOBS_PORT": str(port),
        "JAXOBS_ALLOWED_HOSTS": "train-0.example.com",
    }  # fmt: skip
    server = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as processes:

        def start(*command: str | Path, **more: Any) -> None:
            process = processes.enter_context(subprocess.Popen([str(each) for each in command], **more))
            processes.callback(process.kill)

        start(sys.executable, "-m", "jaxobs", "run", tmp_path / "train.py", env=environment, cwd=ROOT)
        start(
            program("prometheus"), f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address={server}",
            stderr=processes.enter_context((tmp_path / "prometheus.log").open("w")),
        )  # fmt: skip
        url = f"http://{server}"

        def compiled() -> Any:
            return (asked(url, "query", query='jax_compilations_total{job="jax"}', time=str(time.time())) or {}).get(
                "result"
            )

        until(compiled, lambda: (tmp_path / "prometheus.log").read_text()[-2000:])

        def errors() -> dict[str, str]:
            active = (asked(url, "targets") or {}).get("activeTargets", [])
            return {each["labels"]["job"]: each["lastError"] for each in active if each["lastScrape"][0] != "0"}

        until(lambda: "wrong" in errors())
        assert errors()["jax"] == ""
        assert "401" in errors()["wrong"]
        assert asked(url, "query", query='up{job="wrong"}')["result"][0]["value"][1] == "0"
