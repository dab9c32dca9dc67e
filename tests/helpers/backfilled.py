"""A real Prometheus that holds the recorded lives of made-up processes, as if it had scraped them until now."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator

from helpers.requirements import program
from helpers.waiting import until
from tools.alert_suites.scenes import Process
from tools.ports import free_port

LONGEST = 480
"""Minutes of a scene: its last ones."""


def open_metrics(scenes: Iterable[tuple[Iterable[Process], int]], end: float) -> Iterator[str]:
    """Processes in OpenMetrics' text, each scene so that its last minute is at `end`.

    Args:
      scenes: processes, and the minutes of their scene.
      end: seconds since the epoch.
    """
    for processes, minutes in scenes:
        begin = int(end) - 60 * minutes
        for process in processes:
            for name, row in process.series().items():
                moved = begin if "timestamp_seconds" in name else 0
                series = name.replace('", ', '",')
                for minute in range(max(0, minutes - LONGEST), min(minutes + 1, len(row))):
                    if (value := row[minute]) is not None:
                        yield f"{series} {value + moved:.15g} {begin + 60 * minute}\n"
    yield "# EOF\n"


@contextlib.contextmanager
def prometheus(folder: pathlib.Path, scenes: Iterable[tuple[Iterable[Process], int]]) -> Iterator[str]:
    """The address of a Prometheus with these scenes."""
    source, data = folder / "scenes.txt", folder / "data"
    with source.open("w") as file:
        file.writelines(open_metrics(scenes, time.time() - 5))
    subprocess.run(
        [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", source, data],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "prometheus.yml").write_text("{}")
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program("prometheus"), f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={data}",
                "--storage.tsdb.retention.time=1y", f"--web.listen-address={address}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        until(lambda: _is_ready(address), lambda: (folder / "prometheus.log").read_text()[-2000:])
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait()


def _is_ready(address: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/-/ready", timeout=10) as answer:
        return bool(answer.status == 200)
    return False
