"""`jaxobs profile` against XProf's HLO statistics, on the same traces.

XProf has none of CPUs, so the recorded operations are moved to planes of a GPU; both read these.
"""

import contextlib
import gzip
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import xplanes
from helpers.paths import ROOT
from helpers.requirements import missing
from helpers.run_programs import environment as environment_of

from jaxobs.facts.profiles import PRODUCTS
from jaxobs.internals.xplane import space
from jaxobs.internals.xplane.modules import METADATA_PLANE
from jaxobs.internals.xplane.space import Event, Kind, Line, Plane
from jaxobs.profiles import reading
from tools.environments import XPROF, InstallError, NoInterpreterError, environment

pytestmark = pytest.mark.versions

MODELS = ("transformer", "convolutional", "recurrent", "experts")
PROGRAM = ROOT / "tests" / "helpers" / "programs" / "traced_models.py"
SECONDS = 300.0
MOST_DIFFERENCE = 0.02
GPU = {
    "device_vendor": "Nvidia", "core_count": 132, "clock_rate": 1_980_000, "memory_bandwidth": 4_800_000_000_000,
    "memory_size": 140_000_000_000, "compute_cap_major": 9, "compute_cap_minor": 0,
}  # fmt: skip
STATISTICS = """
import json, sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data(sys.argv[1:], "hlo_stats", {})
table = json.loads(data)
names = [each["id"] for each in table["cols"]]
print(json.dumps([{name: (cell or {}).get("v") for name, cell in zip(names, row["c"])} for row in table["rows"]]))
"""

CAPTURED = """
import sys
import jax, jax.numpy as jnp
import jaxobs
jaxobs.install(capture_signal="off", capture_directory=sys.argv[1])
step, x = jax.jit(lambda x: jnp.tanh(x @ x)), jnp.ones((200, 200))
capture = None
while capture is None or capture.result is None:
    with jaxobs.step("train"):
        x = jax.block_until_ready(step(x))
    capture = capture or jaxobs.capture("profile", steps=5)
print(capture.wait(120).path)
"""
SHOWN = """
import glob, json, sys
from xprof.convert import raw_to_tool_data
files = glob.glob(sys.argv[1] + "/plugins/profile/*/*.xplane.pb")
shown = {"tools": raw_to_tool_data.xspace_to_tool_names(files)}
for tool in ("trace_viewer", "framework_op_stats", "overview_page"):
    shown[tool] = json.loads(raw_to_tool_data.xspace_to_tool_data(files, tool, {})[0])
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def xprof() -> str:
    """The interpreter that has it."""
    try:
        return str(environment(XPROF))
    except (InstallError, NoInterpreterError) as error:
        missing(f"xprof is not installed: {error}")


def moved(source: Path, target: Path) -> Path:
    """A trace of CPUs with their operations on planes of GPUs; the file."""
    [file] = source.rglob("*.xplane.pb")
    planes = space.read(file.read_bytes()).planes
    rows: dict[int, dict[int, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for plane in planes:
        for number, line in enumerate(plane.lines if plane.name == "/host:CPU" else ()):
            for event in line.events:
                if "hlo_op" in event.stats:
                    device = event.stats.get("device_ordinal", 0)
                    assert isinstance(device, int)
                    rows[device][number].append(_moved(event))
    made = [
        Plane(
            f"/device:GPU:{device}",
            tuple(Line(f"Stream #{number}(Compute)", tuple(events)) for number, events in lines.items()),
            dict(GPU),
        )
        for device, lines in sorted(rows.items())
    ]
    kept = [each for each in planes if each.name in (METADATA_PLANE, "Task Environment")]
    [written] = xplanes.write(target, *kept, *made).rglob("*.xplane.pb")
    return written


def _moved(event: Event) -> Event:
    kept = ("hlo_op", "hlo_module", "program_id", "run_id")
    # XProf takes an event at zero for one without a time.
    return Event(
        Kind(event.kind.name), event.start + 1000, event.end + 1000,
        {name: value for name, value in event.stats.items() if name in kept},
    )  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_times_and_counts_are_those_of_xprof(model: str, xprof: str, tmp_path: Path) -> None:
    source = tmp_path / "trace"
    subprocess.run([sys.executable, str(PROGRAM), model, str(source)], check=True, timeout=SECONDS, capture_output=True)
    file = moved(source, tmp_path / "moved")
    printed = subprocess.run(
        [xprof, "-c", STATISTICS, str(file)], check=True, timeout=SECONDS, capture_output=True, text=True
    ).stdout  # fmt: skip
    theirs: dict[str, dict[str, Any]] = {each["hlo_op_name"]: each for each in json.loads(printed.splitlines()[-1])}
    ours = {each.operation: each for each in reading.read(file).profile.operations}
    assert len(theirs) > 10
    assert theirs.keys() <= ours.keys()
    for name, row in theirs.items():
        if ours[name].category == "control":
            continue  # a CPU's loop waits on one thread for what others compute; XProf gives it that time, too
        seconds = row["total_self_time"] * 1e-6
        assert ours[name].device_seconds == pytest.approx(seconds, rel=MOST_DIFFERENCE, abs=1e-8), name
        assert ours[name].count == int(row["occurrences"]), name
        if ours[name].category in PRODUCTS and row["measured_memory_bw"]:
            bytes_moved = row["measured_memory_bw"] * 2**30 * row["total_time"] * 1e-6
            assert ours[name].bytes == pytest.approx(bytes_moved, rel=0.05), name
    rest = sum(each.device_seconds for name, each in ours.items() if name not in theirs)
    assert rest <= MOST_DIFFERENCE * sum(each.device_seconds for each in ours.values())


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a capture of five steps on a CPU."""
    return _printed(sys.executable, CAPTURED, tmp_path_factory.mktemp("captures"))


def _printed(python: str, program: str, argument: object) -> str:
    command = [python, "-c", program, str(argument)]
    done = subprocess.run(command, check=True, timeout=SECONDS, capture_output=True, text=True, env=environment_of())
    return done.stdout.splitlines()[-1]


def test_a_capture_is_a_folder_that_xprof_shows(xprof: str, captured: str) -> None:
    shown = json.loads(_printed(xprof, SHOWN, captured))
    assert {"trace_viewer@", "overview_page", "op_profile", "memory_profile"} <= set(shown["tools"])
    names = [each.get("name") or "" for each in shown["trace_viewer"]["traceEvents"]]
    assert sum(name == "PjitFunction(<lambda>)" for name in names) >= 5
    assert sum("tanh" in name for name in names) >= 5
    assert shown["framework_op_stats"] and shown["overview_page"]


@contextlib.contextmanager
def tensorboard(python: str, folder: str) -> Iterator[str]:
    """Runs TensorBoard on the folder; the address at which it serves."""
    command = [str(Path(python).with_name("tensorboard")), "--logdir", folder, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stderr is not None
            lines = (re.match(r"TensorBoard \S+ at (http\S+)/ ", line) for line in process.stderr)
            yield next(line[1] for line in lines if line is not None)
        finally:
            process.kill()


def test_tensorboard_shows_a_capture_among_the_others_of_its_folder(xprof: str, captured: str) -> None:
    """TensorBoard is started on the folder with all captures, as its users start it."""
    capture = Path(captured)
    with tensorboard(xprof, str(capture.parent)) as address:

        def answer(path: str, **query: str) -> Any:
            url = f"{address}/data/{path}?{urllib.parse.urlencode(query)}"
            with urllib.request.urlopen(url, timeout=SECONDS) as response:
                body, encoding = response.read(), response.headers["Content-Encoding"]
            return json.loads(gzip.decompress(body) if encoding == "gzip" else body)

        assert answer("plugins_listing")["profile"]["enabled"]
        [run] = answer("plugin/profile/runs")
        assert run.startswith(f"{capture.name}/")
        assert {"overview_page", "trace_viewer@"} <= set(answer("plugin/profile/run_tools", run=run))
        assert answer("plugin/profile/data", run=run, tag="overview_page")
        events = answer("plugin/profile/data", run=run, tag="trace_viewer")["traceEvents"]
        assert sum("PjitFunction(<lambda>)" in (each.get("name") or "") for each in events) >= 5
