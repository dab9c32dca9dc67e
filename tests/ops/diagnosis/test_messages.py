"""Meaning of messages: those of several lines, those that only mention something, the last words of a process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.log_verdicts import STEPS, TRACEBACK, said

from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.ops.diagnosis.result import CAUSE, INCONCLUSIVE, NO_FAULT


def test_an_exception_is_what_its_later_lines_say(tmp_path: Path) -> None:
    refused = "service@x does not have storage.objects.list access to the bucket."
    text = f"{TRACEBACK}ValueError: Restoring failed. Original error:\n\n{refused}\n"
    assert said(tmp_path, text) == (CAUSE, ["storage_denied"])
    later = f"{TRACEBACK}ValueError: Restoring failed.\n2026-01-31 09:00:05,000 ERROR sync: {refused}\n"
    assert said(tmp_path, STEPS + later)[1] == ["program_error", "storage_denied"]


@pytest.mark.parametrize(
    "line",
    [
        "F0131 09:00:03.100000  1201 shape_tree.cc:54] Something is not as it has to be",
        "2026-01-31 09:00:03.100000: F external/xla/xla/shape_tree.cc:54] Something is not as it has to be",
        "*** SIGABRT received by PID 4711 (TID 4711) on cpu 25 from PID 4711; stack trace: ***",
        "LLVM ERROR: out of ideas",
    ],
)
def test_a_fatal_message_is_a_crash_whatever_it_says(tmp_path: Path, line: str) -> None:
    assert said(tmp_path, f"{STEPS}{line}\n") == (INCONCLUSIVE, [])


@pytest.mark.parametrize(
    "line",
    [
        "UserWarning: TPU backend initialization is taking more than 60.0 seconds.\n  warnings.warn(",
        "2026-01-31 09:00:02,000 INFO train: waiting for the other hosts",
        "ValueError: something without its traceback",
        "srun: error: Task launch for 36.0 failed on node cn131",
        TRACEBACK.rstrip(),
    ],
)
def test_last_words_that_are_no_end(tmp_path: Path, line: str) -> None:
    """A process that waits, an exception without its traceback, a traceback that is cut off."""
    assert said(tmp_path, f"2026-01-31 09:00:00,000 INFO train: starting\n{line}\n") == (INCONCLUSIVE, [])
    assert said(tmp_path, f"{line}\n{STEPS}")[0] == NO_FAULT


def test_what_is_said_behind_a_good_end(tmp_path: Path) -> None:
    """Connections that are closed are how processes go away; a checkpoint that is not saved is a fault."""
    end = f"{STEPS}2026-01-31 09:00:02,000 INFO train: training finished\n"
    closed = "W0131 09:00:03.000000  1201 agent.cc:9] Failed to disconnect from coordination service: Socket closed\n"
    assert said(tmp_path, end + closed) == (NO_FAULT, [])
    assert said(tmp_path, STEPS + closed) == (INCONCLUSIVE, [])
    assert said(tmp_path, f"{end}{TRACEBACK}OSError: [Errno 28] No space left on device\n") == (CAUSE, ["disk_full"])


def test_a_server_that_generates_goes_on(tmp_path: Path) -> None:
    refused = (
        "WARNING 01-31 09:00:03 [hub.py:40] 429 Client Error: Too Many Requests for url: https://huggingface.co/x\n"
    )
    busy = "INFO 01-31 09:00:12 [loggers.py:1] Avg generation throughput: 2214.0 tokens/s, Running: 12 reqs\n"
    assert said(tmp_path, refused + busy) == (NO_FAULT, [])
    idle = busy.replace("2214.0", "0.0")
    assert said(tmp_path, refused + idle) == (CAUSE, ["storage_unavailable"])


def test_a_guess_at_a_preemption_is_none(tmp_path: Path) -> None:
    """The runtime lists what may have happened, and a program says that it listens."""
    notice = "preemption notice received: this machine was preempted\n"
    assert said(tmp_path, STEPS + notice) == (CAUSE, ["preemption"])
    guess = "Either the leader task was preempted/died/restarted unexpectedly or this task has network issues.\n"
    assert said(tmp_path, STEPS + guess)[1] == []
    assert said(tmp_path, f"{STEPS}Cancelled call to retrieve preemption notice. This is expected.\n")[0] == NO_FAULT


@pytest.mark.parametrize(("count", "verdict"), [(12, CAUSE), (3, NO_FAULT)])
def test_compilations_between_the_steps(tmp_path: Path, count: int, verdict: str) -> None:
    """jax_log_compiles shows a function that compiles again and again; a few are evaluation and the last batch."""
    compiling = (
        "WARNING:2026-01-31 09:01:{0:02},000:jax._src.interpreters.pxla:1906: Compiling jit({1}) with global shapes\n"
    )
    start = "".join(compiling.format(n, f"init_{n}") for n in range(40))
    steps = "".join(
        f"2026-01-31 09:02:{n:02},000 INFO train: step {n} loss 1.0\n{compiling.format(n, 'train_step')}"
        for n in range(count)
    )
    assert said(tmp_path, start + steps) == (verdict, ["recompilation"] if verdict == CAUSE else [])


def test_the_form_of_jax_own_log(tmp_path: Path) -> None:
    """Level, time and line come before the message: an information is none of a fault."""
    text = "{}:2026-01-31 09:00:00,120:jax._src.xla_bridge:927: module 'jaxlib.xla_extension' has no attribute 'X'\n"
    assert said(tmp_path, text.format("INFO")) == (NO_FAULT, [])
    assert said(tmp_path, text.format("ERROR")) == (CAUSE, ["jaxlib_mismatch"])


CELL = (
    "---------------------------------------------------------------------------\n"
    "{0}                       Traceback (most recent call last)\n"
    "Cell In[3], line 27\n     26 y = f(x)\n---> 27 z = g(y)\n\n    [... skipping hidden 23 frame]\n\n"
    "File ~/venv/lib/python3.12/site-packages/{1}:1417, in check(value)\n"
    '-> 1417     raise {0}(f"No space left on device {{value}}")\n\n'
    "{0}: {2}\n"
)


@pytest.mark.parametrize(
    ("type", "file", "message", "cause"),
    [
        ("OSError", "a.py", "[Errno 28] No space left on device", "disk_full"),
        ("ValueError", "a.py", "something else", "program_error"),
        ("NotImplementedError", "jax/_src/pallas/mosaic/lowering.py", "something else", "compile_failed"),
        ("KeyError", "jax/_src/pallas/mosaic/lowering.py", "something else", "program_error"),
    ],
)
def test_a_traceback_of_a_notebook(tmp_path: Path, type: str, file: str, message: str, cause: str) -> None:
    assert said(tmp_path, CELL.format(type, file, message)) == (CAUSE, [cause])


def test_a_bar_at_zero_is_no_step(tmp_path: Path) -> None:
    """tqdm prints its bar again when the program ends."""
    full = f"{TRACEBACK}OSError: [Errno 28] No space left on device\n"
    assert said(tmp_path, f"{full}  0%|    | 0/50000 [00:10<?, ?it/s]\n") == (CAUSE, ["disk_full"])
    assert said(tmp_path, f"{full}  0%|    | 3/50000 [00:10<9:00:00, 1.1it/s]\n") == (NO_FAULT, [])


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("cuda_timer.cc:86] Delay kernel timed out: measured time has sub-optimal accuracy.", NO_FAULT),
        ("cuda_timer.cc:86] Nobody has seen this message before", INCONCLUSIVE),
    ],
)
def test_a_last_line_that_only_looks_like_an_error(tmp_path: Path, line: str, verdict: str) -> None:
    text = f"{STEPS}2026-01-31 09:00:02.197166: E external/xla/xla/stream_executor/cuda/{line}\n"
    assert said(tmp_path, text) == (verdict, [])


def test_a_library_that_is_not_made_where_memory_is_short(tmp_path: Path) -> None:
    library = "2026-01-31 09:00:02: E cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED\n"
    memory = "RuntimeError: Resource exhausted: Out of memory while trying to allocate 51380224 bytes.\n"
    assert said(tmp_path, library) == (CAUSE, ["cuda_library_mismatch"])
    assert said(tmp_path, library + memory) == (CAUSE, ["device_out_of_memory"])


@pytest.mark.parametrize(
    "prefix",
    ["", "I1119 14:49:41.348441 140491874862912 run_docker.py:258] ", "INFO:root:"],
)
def test_what_a_launcher_logs_as_information(tmp_path: Path, prefix: str) -> None:
    error = "2023-11-19 05:49:41.357955: E external/xla/xla/a.cc:628] CUDA_ERROR_ILLEGAL_ADDRESS\n"
    assert said(tmp_path, prefix + error) == (CAUSE, ["kernel_fault"])
    assert said(tmp_path, prefix + error.replace(": E ", ": I ")) == (NO_FAULT, [])
    raised = [
        "Traceback (most recent call last):", 'File "/app/a.py", line 1, in main', "step()",
        "OSError: [Errno 28] No space left on device",
    ]  # fmt: skip
    assert said(tmp_path, "".join(f"{prefix}{line}\n" for line in raised)) == (CAUSE, ["disk_full"])


def test_a_traceback_without_its_first_line(tmp_path: Path) -> None:
    error = "ImportError: cannot import name 'A' from 'b'\n"
    assert said(tmp_path, f'File "/app/a.py", line 1, in <module>\n    from b import A\n{error}')[1] == [
        "program_error"
    ]
    assert said(tmp_path, f"some words\n{error}") == (INCONCLUSIVE, [])


def test_the_message_of_an_error_in_json(tmp_path: Path) -> None:
    text = '{{"{0}": 8, "message": "There is no more capacity in the zone"}}\n'
    assert said(tmp_path, f"ERROR: (gcloud.compute) {text.format('code')}") == (CAUSE, ["not_scheduled"])
    assert said(tmp_path, f"ERROR: (gcloud.compute) {text.format('user')}") == (NO_FAULT, [])


@pytest.mark.parametrize(
    ("file", "cause"), [("jax/_src/lib/__init__.py", "jaxlib_mismatch"), ("chex/a.py", "library_mismatch")]
)
def test_who_misses_a_name_in_jaxlib(tmp_path: Path, file: str, cause: str) -> None:
    """JAX itself, or a library that is older than both."""
    text = f'Traceback (most recent call last):\n  File "/env/{file}", line 3, in <module>\n    x = jaxlib.a.B\n'
    assert said(tmp_path, f"{text}AttributeError: module 'jaxlib.a' has no attribute 'B'\n") == (CAUSE, [cause])


@pytest.mark.parametrize(
    ("field", "message"), [("message", ""), ("exception", "the step failed"), ("stack_trace", "x")]
)
@pytest.mark.parametrize(
    ("error", "cause"), [("OSError: [Errno 28] No space", "disk_full"), ("KeyError: 'x'", "program_error")]
)
def test_a_traceback_in_a_structured_log(tmp_path: Path, field: str, message: str, error: str, cause: str) -> None:
    """As a message of several lines, or beside it."""
    fields = {"severity": "ERROR", "time": "2026-01-31T09:00:00Z", "message": message, field: f"{TRACEBACK}{error}"}
    assert said(tmp_path, json.dumps(fields) + "\n") == (CAUSE, [cause])


def test_an_error_behind_which_a_hint_comes(tmp_path: Path) -> None:
    refused = "srun: error: Unable to confirm allocation for job 1234: Invalid job id specified\n"
    hint = "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 1234\n"
    assert said(tmp_path, refused + hint) == (INCONCLUSIVE, [])
    assert said(tmp_path, f"{refused}{hint}2026-01-31 09:00:02,000 INFO train: starting\n")[0] == NO_FAULT
    assert said(tmp_path, f"{refused}{hint}{STEPS}")[0] == NO_FAULT


def test_a_traceback_in_a_box(tmp_path: Path) -> None:
    """As the library Rich draws it: its code is not what was raised, and its files count."""
    box = "╭─── Traceback (most recent call last) ───╮\n"
    box += "│ /usr/lib/python3.11/site-packages/chex/_src/types.py:52 in f │\n"
    box += "".join(f"│   {n} ValueError: this is only code      │\n" for n in range(40))
    box += "│ ❱ 52 Array = jax.numpy.DeviceArray       │\n"
    box += "╰──────────────────────────────────────────╯\n"
    raised = "AttributeError: module 'jax.numpy' has no attribute 'DeviceArray'\n"
    assert said(tmp_path, box + raised) == (CAUSE, ["library_mismatch"])
    assert said(tmp_path, f"{box}KeyError: 'x'\n") == (CAUSE, ["program_error"])


def test_a_directory_that_is_called_like_a_library(tmp_path: Path) -> None:
    raised = "ValueError: the shape of each shard is wrong\n"
    own = f'Traceback (most recent call last):\n  File "/home/u/jax/train.py", line 8, in main\n    f()\n{raised}'
    assert said(tmp_path, own) == (CAUSE, ["program_error"])
    assert said(tmp_path, own.replace("u/jax/", "u/jax/_src/")) == (CAUSE, ["sharding_mismatch"])


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("AssertionError: sync_global_devices name mismatch ('save') Expected: 17; got: -4.", "programs_diverge"),
        ("AssertionError: the seeds differ Expected: 17; got: -4.", "inputs_differ"),
        ("JaxRuntimeError: INVALID_ARGUMENT: Conflicting tasks specified for the same barrier: x", "programs_diverge"),
        ("JaxRuntimeError: INVALID_ARGUMENT: Attempt to donate the same buffer twice in Execute() (flattened argument "
         "4, replica 0, partition 0, first use: 3).", "donated_array_used"),
        ("JaxRuntimeError: INVALID_ARGUMENT: Attempt to use a buffer that was previously donated in the same call to "
         "Execute() (flattened argument 4).", "donated_array_used"),
        ('ValueError: FAILED_PRECONDITION: Failed to acquire lock on file: "/a/b.__lock" [OS error 37: ENOLCK No locks '
         "available]", "checkpoint_path"),
        ("JaxRuntimeError: INTERNAL: Invalid system configuration: 2x2 host topology with 0 missing hosts, but 1 hosts "
         "in total.", "coordinator_unreachable"),
        ("BlockingIOError: Unable to create file (unable to lock file, errno = 38, error message = 'Function not "
         "implemented')", "checkpoint_path"),
    ],
)  # fmt: skip
def test_what_is_raised(tmp_path: Path, message: str, cause: str) -> None:
    """Messages of one class mean the same."""
    assert said(tmp_path, f"{STEPS}{TRACEBACK}{message}\n") == (CAUSE, [cause])


@pytest.mark.parametrize(
    ("state", "causes"),
    [
        ('    "OOMKilled": true,\n    "ExitCode": 137,', ["host_out_of_memory"]),
        ('    "OOMKilled": false,\n    "ExitCode": 0,', []),
        ("OOMKilled=false ExitCode=0", []),
        ("OOMKilled: true", ["host_out_of_memory"]),
    ],
)
def test_the_state_of_a_container(tmp_path: Path, state: str, causes: list[str]) -> None:
    """As `docker inspect` tells it, in both answers."""
    assert said(tmp_path, f'[\n  {{\n    "State": {{\n{state}\n')[1] == causes


@pytest.mark.parametrize("error", ["RET_CHECK failure (hlo.cc:4) a name is not unique", "Failed to parse a result."])
def test_an_error_of_the_cache_stops_nothing(tmp_path: Path, error: str) -> None:
    """The program is compiled instead: it is about the entry, and neither the compiler nor the device."""
    text = "UserWarning: Error reading persistent compilation cache entry for 'f': JaxRuntimeError: INTERNAL: "
    assert said(tmp_path, f"{text}{error}\n{STEPS}") == (CAUSE, ["cache_corrupt"])
    full = f"{text.replace('INTERNAL', 'RESOURCE_EXHAUSTED')}Out of memory while trying to allocate 9 bytes.\n"
    assert "device_out_of_memory" not in said(tmp_path, f"{full}{STEPS}")[1]


ROW = "| 41%   38C    P8    12W / 280W |  {0}MiB / 24220MiB |      0%      Default |\n"
CUBLAS = "2026-01-31 09:00:02: E cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED\n"
FULL = f"{TRACEBACK}jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.\n"


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        (ROW.format(22101) + CUBLAS, ["accelerator_memory_taken"]),
        (ROW.format(22101) + FULL, ["accelerator_memory_taken"]),
        (ROW.format(3) + FULL, ["device_out_of_memory"]),
        (ROW.format(22101) + ROW.format(3) + FULL, ["device_out_of_memory"]),
        (STEPS + ROW.format(22101) + FULL, ["device_out_of_memory"]),
        (ROW.format(22101) + STEPS, []),
    ],
)
def test_a_device_that_is_full_before_the_start(tmp_path: Path, text: str, causes: list[str]) -> None:
    """Another process holds its memory, if the program lacks some, and has made no step that took it."""
    assert said(tmp_path, text)[1] == causes


def test_a_preemption_that_was_survived(tmp_path: Path) -> None:
    """The job starts again behind it, and comes further than before."""
    notice = "2026-01-31 09:00:02,000 WARNING watcher: preemption notice: the node goes away\n"
    again = "2026-01-31 09:09:00,000 INFO train: resuming from step 2\n"
    later = STEPS.replace("09:00", "09:10").replace("step 2", "step 3")
    assert said(tmp_path, STEPS + notice + again + later) == (NO_FAULT, [])
    caught = "2026-01-31 09:00:02,000 WARNING train: SIGTERM caught\n"
    assert said(tmp_path, STEPS + caught + again + later) == (NO_FAULT, [])
    assert said(tmp_path, STEPS + notice + again) == (CAUSE, ["preemption"])
    assert said(tmp_path, STEPS + notice + STEPS) == (CAUSE, ["preemption"])


def test_a_node_of_ray_that_was_preempted(tmp_path: Path) -> None:
    died = (
        "(Driver pid=7) The actor died because its node has died. Node Id: b157\n(Driver pid=7) \tthe actor's node was "
    )
    assert said(tmp_path, f"{died}preempted: spot\n") == (CAUSE, ["preemption"])
    assert said(tmp_path, f"{died}terminated unexpectedly: health check failed\n") == (CAUSE, ["host_failed"])


def test_a_checkpoint_that_nobody_misses(tmp_path: Path) -> None:
    files = '  File "/env/lib/site-packages/orbax/checkpoint/checkpoint_manager.py", line 838, in {0}\n    {0}(path)\n'
    text = f"{STEPS}Traceback (most recent call last):\n{files}FileNotFoundError: [Errno 2] No such file: '/a/2000'\n"
    assert said(tmp_path, text.format("restore")) == (CAUSE, ["checkpoint_damaged"])
    assert said(tmp_path, text.format("rmtree")) == (CAUSE, ["program_error"])
    failed = "2026-01-31 08:00:00,000 ERROR orbax: Exception in background save thread: Barrier timed out. Id: x\n"
    assert said(tmp_path, failed + text.format("rmtree")) == (INCONCLUSIVE, [])


def test_the_task_that_slurm_names(tmp_path: Path) -> None:
    text = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\nsrun: error: a: task 3: Out Of Memory\n"
    path = tmp_path / "slurm-48211.out"
    path.write_text(text, encoding="utf-8")
    causes = diagnose(gather(Inputs(logs=(str(path),)))).causes
    assert [(each.id, each.component) for each in causes] == [("host_out_of_memory", "process 3")]


def test_a_metric_in_json(tmp_path: Path) -> None:
    assert said(tmp_path, '{"step": 1, "train_loss": NaN}\n{"step": 2, "train_loss": NaN}\n') == (
        CAUSE,
        ["nonfinite_values"],
    )
    assert (
        said(tmp_path, '{"step": 1, "note": "a loss: nan was asked about"}\n{"step": 2, "loss": 1.2}\n')[0] == NO_FAULT
    )


def test_a_bar_that_a_collector_calls_an_error(tmp_path: Path) -> None:
    bar = "ERROR 2026-01-31T09:0{0}:00.0 epoch: 6{0}%|███   | 10{0}/300 [0{0}:01<02:36, 4.21it/s]\n"
    refused = "ERROR 2026-01-31T09:00:30.0 429 Client Error: Too Many Requests for url: https://huggingface.co/x\n"
    assert said(tmp_path, bar.format(0) + refused + bar.format(1) + bar.format(2)) == (NO_FAULT, [])
    assert said(tmp_path, bar.format(0) + bar.format(1) + refused)[1] == ["storage_unavailable"]


def test_a_device_that_is_not_shown_and_so_not_found(tmp_path: Path) -> None:
    text = "W0131 09:00:00.000000 7 platform_util.cc:206] unable to create StreamExecutor: invalid device ordinal\n"
    none = "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found for platform CUDA\n"
    assert said(tmp_path, text + TRACEBACK + none) == (CAUSE, ["hidden_device"])
    assert said(tmp_path, TRACEBACK + none) == (CAUSE, ["no_accelerator"])


def test_a_check_that_tells_of_its_cause(tmp_path: Path) -> None:
    """The crash follows from what the same message says, not that from the crash."""
    check = "RuntimeError: client.cc:1110 : Check failed: session.Run(x) == Status::OK() (Internal: From task:0:\n"
    cause = "Invalid system configuration: 2x2 host topology with 0 missing hosts, but 1 hosts in total.\n"
    assert said(tmp_path, check + cause) == (CAUSE, ["coordinator_unreachable"])
    assert said(tmp_path, check) == (INCONCLUSIVE, [])


def test_a_configuration_is_no_step(tmp_path: Path) -> None:
    """An error after which the first steps are made was survived, however many epochs were planned."""
    planned = "config: {'epochs': 100, 'batch': 64}\n"
    stale = "2026-01-31 08:59:00,000 WARNING data: stale file handle\n"
    assert said(tmp_path, planned + stale + '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n') == (NO_FAULT, [])
