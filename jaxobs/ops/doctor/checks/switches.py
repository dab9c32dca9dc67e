"""Switches that change what a job computes, or how, without a word in its log."""

import re
from collections.abc import Iterator

from jaxobs.ops.doctor.checks import debug_options, xla_flags
from jaxobs.ops.doctor.machine import TABLES, Finding, Machine, ok

_ELSEWHERE = re.compile(
    r"jax_(platform|compilation_cache|persistent_cache|enable_compilation_cache|traceback|logging|log_|debug|dump"
    r"|include_|hlo_source|source_url|pprint|captured_constants|tracer_error|num_cpu_devices|check_proxy|coordinator)"
)
"""Settings of which other checks say something, or that only change what is logged."""
_NUMBERS = re.compile(
    r"fast_m|_ftz|precision|determinis|nan|tf32|_f8|fp8|bf16|f16|approx|unsafe|honor_|accura|platform_dependent"
    r"|autotune_level|max_isa|algebraic|reassoc|reduction|rtol|dot_merger|cublas|cudnn|triton_gemm|optimization_level"
)
"""Names of flags of XLA that choose other arithmetic, or another kernel that adds in another order."""


def check(machine: Machine) -> Iterator[Finding]:
    """By JAX's settings that have another value than its defaults, by names of XLA's flags, and by a table."""
    found = [*_of_jax(machine), *_of_flags(machine), *_of_libraries(machine)]
    yield from found or [ok("No switch changes what a job computes", "JAX's defaults hold")]


def _switch(machine: Machine, name: str, value: str, why: str, fix: str | None = None) -> Finding:
    every = " Every process of the job must have it." if machine.is_distributed else ""
    return Finding(
        severity="info", title=f"{name} changes the job", entity=name, evidence=value, why=why + every,
        fix=f"unset {name}   # unless it is meant" if fix is None else fix,
    )  # fmt: skip


def _of_jax(machine: Machine) -> Iterator[Finding]:
    said = {each.entity for each in debug_options.check(machine)}
    for name, variable in machine.given_settings.items():
        if name not in said and not _ELSEWHERE.match(name):
            meaning = re.split(r"(?<=[.;])\s", " ".join(machine.imported.meanings.get(name, "").split()))[0]
            evidence = f"{variable}={machine.environment[variable]}; JAX's default is {machine.defaults.settings[name]}"
            yield _switch(machine, variable, evidence, f"JAX says: {meaning}")


def _of_flags(machine: Machine) -> Iterator[Finding]:
    for flag in machine.flags:
        is_slow = any(flag.lower().startswith(each) for each in xla_flags.SLOW)
        if _NUMBERS.search(name := flag.partition("=")[0]) and not is_slow:
            why = "It may choose other arithmetic or other kernels: results and speed differ."
            yield _switch(machine, name, flag, why, "Leave it out of XLA_FLAGS, unless it is meant")


def _of_libraries(machine: Machine) -> Iterator[Finding]:
    for name, pattern, why, value in machine.known_variables(TABLES["switches"]):
        if re.fullmatch(pattern, value):
            yield _switch(machine, name, f"{name}={value}", why)
