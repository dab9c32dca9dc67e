"""Sections of `docs/symptoms.md`, by the name of a finding or of an error's kind."""

from __future__ import annotations

import re

from jaxobs.base.links import page_url

PAGE = "docs/symptoms.md"

_SLOW_START = "The first call or request takes very long"
_RECOMPILATIONS = "It compiles all the time"
_COLD_CACHE = "The cache does not help after a deploy"
_SLOW_STEPS = "My step got slow"
_IDLE = "The device is idle"
_SLOW_REQUESTS = "Some requests are slow"
_OUT_OF_MEMORY = "It ran out of memory"
_LEAKS = "Memory keeps growing"
_NAN = "The loss is NaN"
_HANGS = "It hangs"
_PROCESSES = "One process is slow, or they disagree"
_CRASHES = "It died, and nobody knows why"

SECTIONS = {
    "array_leak": _LEAKS,
    "cache_missed_again": _COLD_CACHE,
    "cold_requests": _SLOW_REQUESTS,
    "copies_in_step": _SLOW_STEPS,
    "far_from_roofline": _SLOW_STEPS,
    "float64_operations": _SLOW_STEPS,
    "replicated_operations": _SLOW_STEPS,
    "costly_recompilations": _RECOMPILATIONS,
    "diverging_programs": _PROCESSES,
    "eager_initialization": _SLOW_START,
    "eager_recompiles": _RECOMPILATIONS,
    "executable_leak": _LEAKS,
    "exposed_collectives": _IDLE,
    "failed_requests": _SLOW_REQUESTS,
    "flip_flop": _RECOMPILATIONS,
    "forgotten_programs": _RECOMPILATIONS,
    "host_memory_leak": _LEAKS,
    "host_sync": _IDLE,
    "identity_hashed_static": _RECOMPILATIONS,
    "idle_devices": _IDLE,
    "input_bound": _IDLE,
    "input_pauses": _SLOW_STEPS,
    "long_compilation": _SLOW_START,
    "memory_ran_out": _OUT_OF_MEMORY,
    "no_persistent_cache": _SLOW_START,
    "nonfinite": _NAN,
    "nonfinite_values": _NAN,
    "out_of_memory": _OUT_OF_MEMORY,
    "program_may_not_fit": _OUT_OF_MEMORY,
    "recompile_storm": _RECOMPILATIONS,
    "recreated_functions": _RECOMPILATIONS,
    "slow_steps": _SLOW_STEPS,
    "static_values": _RECOMPILATIONS,
    "step_time_regression": _SLOW_STEPS,
    "straggler": _PROCESSES,
    "stuck": _HANGS,
    "two_shardings_at_start": _SLOW_START,
    "unbounded_shapes": _RECOMPILATIONS,
    "unbounded_structures": _RECOMPILATIONS,
    "uncaught_error": _CRASHES,
    "weak_type_at_start": _SLOW_START,
}
"""Headings of the page, by the name of a finding or of an error's kind."""


def symptom_url(kind: str | None = None) -> str:
    """Returns the address of the section about a finding or an error; without one, of the whole page."""
    section = SECTIONS.get(kind or "")
    return page_url(PAGE) if section is None else f"{page_url(PAGE)}#{_anchor(section)}"


def _anchor(heading: str) -> str:
    """Returns the anchor that GitHub makes from a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
