"""An answer beyond the id of a cause: its certainty, the first action, the place in the code, what changed."""

import json
from pathlib import Path

import pytest

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.judging import judge
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, LIKELY, NO_FAULT, Diagnosis

LIBRARY = "/opt/venv/lib/python3.11/site-packages"
FORKED = (
    "/lib/python3.11/multiprocessing/popen_fork.py:66: RuntimeWarning: os.fork() was called. os.fork() is incompatible"
    " with multithreaded code, and JAX is multithreaded, so this will likely lead to a deadlock.\n  self.pid = f()\n"
)


def of_log(folder: Path, text: str) -> Diagnosis:
    (folder / "run.log").write_text(text, encoding="utf-8")
    return diagnose(gather(Inputs(logs=(str(folder / "run.log"),))))


def traceback(raised: str, *calls: str) -> str:
    lines = "".join(f'  File "{each.partition("|")[0]}\n    {each.partition("|")[2]}\n' for each in calls)
    return f"Traceback (most recent call last):\n{lines}{raised}\n"


def test_what_a_message_asks_for_and_where(tmp_path: Path) -> None:
    varies = (
        "TypeError: scan body function carry input and carry output must have equal types, but they differ:\n\n"
        "The input carry x has type f32[8]{V:j} but the output has f32[8]{V:(i,j)}, so the varying manual axes do not "
        "match.\n\nThis might be fixed by applying `jax.lax.pvary(..., ('i',))` to the initial carry value."
    )
    text = traceback(varies, 'scene.py", line 58, in trace|paths = f(x)', f'{LIBRARY}/rt/image.py", line 3, in g|scan(')
    (found,) = of_log(tmp_path, text).causes
    assert (found.id, found.where) == ("sharding_mismatch", "scene.py:58 in trace")
    assert "jax.lax.pvary" in found.first_action and " at scene.py:58 in trace" in found.first_action
    assert "The message says: This might be fixed by applying `jax.lax.pvary(..., ('i',))`" in found.fix
    raised = traceback("OSError: [Errno 28] No space left on device: '/ckpt/7/d'", 'a.py", line 1, in f|write()')
    assert "/ckpt/7/d" in of_log(tmp_path, raised).causes[0].first_action
    missing = traceback("ModuleNotFoundError: No module named 'einops'", 'a.py", line 1, in <module>|import einops')
    assert "pip install einops" in of_log(tmp_path, missing).causes[0].first_action


def test_an_attribute_missed_at_import_is_of_another_release(tmp_path: Path) -> None:
    error = "AttributeError: 'Config' object has no attribute 'define_bool_state'"
    calls = (
        '<stdin>", line 1, in <module>|import flax',
        f'{LIBRARY}/flax/configurations.py", line 42, in f|return g()',
    )
    (found,) = of_log(tmp_path, traceback(error, *calls)).causes
    assert found.id == "library_mismatch" and "pip install -U flax" in found.first_action
    (later,) = of_log(tmp_path, traceback(error, calls[0].replace("import flax", "main()"), calls[1])).causes
    assert later.id == "program_error"


def test_an_exception_of_no_known_kind_is_no_certain_cause(tmp_path: Path) -> None:
    found = of_log(tmp_path, traceback("pkg.OddError: no", 'a.py", line 9, in go|f()'))
    assert found.verdict == LIKELY and found.causes[0].id == "program_error"
    assert found.causes[0].first_action.startswith("Look at a.py:9 in go")
    assert of_log(tmp_path, f"{FORKED}step 1 loss 2.0\nstep 2 loss 1.9\n").verdict == NO_FAULT
    stuck = of_log(tmp_path, f"INFO starting 8 workers\n{FORKED}")
    assert (stuck.verdict, stuck.causes[0].id) == (LIKELY, "fork_deadlock") and "spawn" in stuck.causes[0].first_action


def test_weak_signs_of_one_story_add_up(tmp_path: Path) -> None:
    plugin = "UserWarning: cloud_tpu_init failed: KeyError('v4-8')\n"
    cpu = "WARNING:absl:No GPU/TPU found, falling back to CPU.\n"
    assert [each.id for each in of_log(tmp_path, plugin + cpu).causes] == ["plugin_mismatch"]
    assert of_log(tmp_path, plugin + cpu).verdict == LIKELY
    assert not of_log(tmp_path, cpu).causes and not of_log(tmp_path, plugin).causes


@pytest.mark.parametrize(("share", "verdict"), [(0.4, LIKELY), (0.3, NO_FAULT), (0.01, NO_FAULT)])
def test_what_a_short_run_says_of_itself_is_likely(tmp_path: Path, share: float, verdict: str) -> None:
    """The answer tells what changed since the start before it, too."""
    head = {"process_index": 0, "pid": 1, "sequence": 1}
    events = [
        {"event": "manifest", "versions": {"jax": "0.10.1"}, "flags": {}, "time": "2026-01-31T08:00:00Z"},
        {"event": "manifest", "versions": {"jax": "0.10.2"}, "flags": {}, "time": "2026-01-31T09:00:00Z", "pid": 2},
        {"event": "manifest", "versions": {"jax": "0.10.2", "jaxlib": "1"}, "time": "2026-01-31T09:00:01Z", "pid": 2},
        {"event": "finding", "finding": "input_bound", "id": "i", "function": "f", "summary": "w", "advice": "Load.",
         "severity": "info", "where": "a.py:3", "seconds": share * 30, "time": "2026-01-31T09:00:19Z", "pid": 2},
        {"event": "exit", "reason": "normal", "code": 0, "time": "2026-01-31T09:00:20Z", "pid": 2},
    ]  # fmt: skip
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"{json.dumps({**head, **each})}\n" for each in events), encoding="utf-8")
    found = diagnose(gather(Inputs(event_logs=(str(path),))))
    assert found.verdict == verdict
    (change,) = found.changed
    assert (change.what, change.before, change.after) == ("jax", "0.10.1", "0.10.2")
    told = [(each.id, each.where, each.first_action) for each in found.causes]
    assert told == ([("input_bound", "a.py:3", "Load.")] if verdict == LIKELY else [])
    assert all(each.confidence < 0.8 for each in found.causes) and found.verdict != CAUSE


def test_near_incidents_decide_where_the_signs_are_silent(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(
        traceback("XlaRuntimeError: INTERNAL: odd", 'a.py", line 9, in go|f()'), encoding="utf-8"
    )
    evidence = gather(Inputs(logs=(str(tmp_path / "run.log"),)))
    silent = INCONCLUSIVE, []
    for said, found in ((0.9, (LIKELY, [("disk_full", 0.79)])), (0.7, silent), (None, silent)):
        told = judge(evidence, known(), lambda _, said=said: said and ("disk_full", said, ()))
        assert (told.verdict, [(each.id, each.confidence) for each in told.causes]) == found
