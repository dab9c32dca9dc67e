"""A real node_exporter reads the metrics file of a job, as a user other than the job's if it can be another."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from helpers import run_programs
from helpers.paths import ROOT
from helpers.requirements import program
from helpers.waiting import until

from tools.ports import free_port

JOB = """
import jaxobs, jax.numpy as jnp
jaxobs.install()
for _ in jaxobs.steps(range(12), "train"):
    jnp.ones(3).block_until_ready()
"""


def other_user() -> dict[str, Any]:
    """User without rights who may run a program, if this process may choose."""
    with contextlib.suppress(KeyError):
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    return {}


@pytest.mark.slow
def test_node_exporter_reads_the_metrics_file() -> None:
    """By the recipe of docs/prometheus.md; nothing else that lies there counts as a file of metrics."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        ended = run_programs.run(JOB, JAXOBS_METRICS_FILE=str(folder / "nightly.prom"), PYTHONPATH=str(ROOT))
        assert ended.returncode == 0, ended.stderr
        assert os.listdir(folder) == ["nightly.prom"]
        address = f"127.0.0.1:{free_port()}"
        process = subprocess.Popen(
            [
                program("prometheus-node-exporter"), f"--web.listen-address={address}", "--collector.disable-defaults",
                "--collector.textfile", f"--collector.textfile.directory={folder}",
            ],
            stderr=subprocess.DEVNULL, **other_user(),
        )  # fmt: skip
        try:

            def answered() -> str | None:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/metrics") as answer:
                    return str(answer.read().decode())
                return None

            text = until(answered) or ""
        finally:
            process.kill()
            process.wait()
        assert 'jax_steps_total{loop="train"} 12\n' in text
        assert "node_textfile_scrape_error 0\n" in text
    finally:
        shutil.rmtree(folder)
