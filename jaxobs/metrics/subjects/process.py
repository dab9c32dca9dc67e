"""The process and its job."""

from jaxobs.facts.process import LAST_EXITS
from jaxobs.metrics.metric import Metric

_VERSIONS = ("jaxobs", "python", "jax", "jaxlib", "plugin", "driver", "runtime")

METRICS = (
    Metric("jax_process_start_timestamp_seconds", "Start time of the process.",
           lambda s: [((), s.process.started if s.wall is None else s.wall.started)]),
    Metric("jax_build_info", "Versions of the software in use.",
           lambda s: [(tuple(s.process.versions.get(name, "") for name in _VERSIONS), 1)], _VERSIONS),
    Metric("jax_process_info", "Position of this process in its job.",
           lambda s: [((str(s.process.process_index), str(s.process.process_count)), 1)],
           ("process_index", "process_count")),
    Metric("jax_run_info",
           ("The run that this process belongs to, if known: the setting run_id, else the job's coordinator; and how "
            "the process before it ended, if a file records it."),
           lambda s: [((s.process.run_id, s.process.last_exit), 1)], ("run_id", "last_exit"),
           values=(("last_exit", ("", *LAST_EXITS)),)),
    Metric("jax_processes", "Number of processes in the job that this one belongs to, as JAX counts them.",
           lambda s: [((), s.process.process_count)]),
)  # fmt: skip
