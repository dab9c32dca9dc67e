"""Why memory ran out: each rule looks at one report and says what it sees, by which figures, and what to do.

Facts in, facts out. A rule speaks only where figures show it; if none does, the answer is `unknown`.
"""

from collections.abc import Callable, Sequence

from jaxobs.facts.errors import OomCause, OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.recorder.oom_case import (
    LARGE_SHARE,
    Case,
    Group,
    buffer_lines,
    case_of,
    flag_lines,
    group_line,
    live_matters,
    place,
    signature_line,
    wanted,
)
from jaxobs.recorder.oom_other_process import cannot_start, probably_another, seen_by_the_driver
from jaxobs.recorder.oom_texts import human

MOST_CAUSES = 4
ABSURD_FACTOR = 4
"""A program may want somewhat more than there is; so many times as much is a mistake in a shape."""
LEAK_COUNT = 8
LEAK_SHARE = 0.4
LEAST_LEAK_SHARE = 0.02
"""Share of the device that a leak found before must hold: a smaller one did not fill the device."""
MANY_EXECUTABLES = 50


def diagnose(
    event: OutOfMemory, *, executables: int = 0, growing: bool = False, leaks: Sequence[Finding] = ()
) -> tuple[OomCause, ...]:
    """The causes that figures, compilations so far and lasting leaks support, likeliest first; or `unknown`."""
    case = case_of(event, executables=executables, growing=growing, leaks=leaks)
    found: list[OomCause] = []
    for rule in RULES:
        cause = rule(case)
        # Some causes have several rules, the surest first.
        if cause is not None and all(each.cause != cause.cause for each in found):
            found.append(cause)
    if any(each.cause in ("leaked_arrays", "replicated_arrays") for each in found):
        found = [each for each in found if each.cause != "live_arrays"]  # the same arrays, told more closely
    return tuple(found[:MOST_CAUSES]) or (_unknown(case),)


# ------------------------------------------------------------------------------------------------------- rules


def _absurd_request(case: Case) -> OomCause | None:
    most = case.total or case.limit
    if case.wanted is None or most is None or case.wanted <= most:
        return None
    if case.event.stage in ("compile", "load") or (case.temp or case.event.buffers):
        if case.wanted < ABSURD_FACTOR * most:
            return None
    elif case.event.stage == "run" and case.wanted < ABSURD_FACTOR * most:
        return None
    times = case.wanted / most
    evidence = [
        f"Requested {human(case.wanted)}; the {place(case)} has {human(most)} in total, {times:,.1f} times less."
    ]
    return OomCause(
        cause="absurd_request",
        summary=f"One request was for {human(case.wanted)}, more than the {place(case)} has: a wrong shape, "
        "not a lack of memory.",
        advice="Freeing memory will not help. Look at the shapes of the arrays created at "
        f"{case.event.call_site or 'the call site'}: a broadcast of two long axes (x[:, None] op y[None, :]), a "
        "one-hot over a large vocabulary, a size in the wrong unit. Print `jax.eval_shape(fun, *args)`.",
        evidence=(*evidence, *buffer_lines(case), *signature_line(case)),
    )


def _program_too_large(case: Case) -> OomCause | None:
    event, need = case.event, case.event.used_bytes if case.event.stage == "compile" else case.temp
    room = case.limit if event.stage == "compile" else case.free
    if event.stage == "compile" and need is None:
        need = case.wanted
    if need is None or room is None or need <= room:
        return None
    if event.stage != "compile" and case.limit is not None and need < max(case.limit / 2, case.live or 0):
        return None  # it would have fitted beside less
    what = "The program needs" if event.stage == "compile" else "The program's temporaries need"
    evidence = [f"{what} {human(need)}; {human(room)} is {'there' if event.stage == 'compile' else 'free'}."]
    for sizes, source in ((event.sections, "the error"), (event.program, "the compiler")):
        if sizes:
            evidence.append(f"By {source}: {', '.join(f'{name} {human(size)}' for name, size in sizes.items())}.")
    return OomCause(
        cause="program_too_large",
        summary=f"{what} {human(need)}, {human(need - room)} more than "
        f"{'the device has' if event.stage == 'compile' else 'is free'}.",
        advice=_shrink(case, need),
        evidence=(*evidence, *buffer_lines(case), *signature_line(case)),
    )


def _shrink(case: Case, need: int) -> str:
    event = case.event
    advice = [
        "Make the activations smaller: jax.checkpoint around the layers, a smaller batch with accumulated gradients, "
        "or shard the batch and the longest axis over a mesh."
    ]
    sizes = event.program or event.sections
    arguments = sizes.get("argument", 0)
    if arguments and sizes.get("output", 0) >= arguments / 2 and not sizes.get("alias"):
        advice.append(
            f"Nothing is donated: donate_argnums for the state that is returned saves up to "
            f"{human(min(arguments, sizes['output']))}."
        )
    padding = sum(each.padding or 0 for each in event.buffers)
    if padding > need / 5:
        advice.append(
            f"{human(padding)} of the listed buffers is padding: let the last two axes be multiples of 8 and 128, or "
            "move a short axis away from the end."
        )
    return " ".join(advice)


def _leak_that_was_found(case: Case) -> OomCause | None:
    """Returns the leak seen to accumulate from step to step, if it holds a part of the device that counts."""
    if case.wanted is not None and case.wanted > (case.limit or case.wanted):
        return None
    known = [(leak, _group_of(leak, case.groups)) for leak in case.leaks]
    standing = [(leak, group) for leak, group in known if group is None or group.share >= LEAST_LEAK_SHARE]
    if not standing:
        return None
    (first, group), *others = sorted(standing, key=lambda each: 0.0 if each[1] is None else -each[1].share)
    sites = first.data.get("call_sites") or {}
    evidence = [] if group is None else [group_line(group)]
    if sites and (group is None or not group.call_sites):
        evidence.append(f"Created at {', '.join(sorted(sites, key=lambda each: -sites[each])[:3])}.")
    evidence += [] if group is not None else first.evidence[:2]
    evidence += [f"As well: {leak.summary}" for leak, _ in others[:2]]
    return OomCause(cause="leaked_arrays", summary=first.summary, advice=first.advice, evidence=tuple(evidence))


def _group_of(leak: Finding, groups: Sequence[Group]) -> Group | None:
    shape = f"{leak.data.get('dtype')}[{','.join(map(str, leak.data.get('shape') or ()))}]"
    alike = [each for each in groups if each.shape == shape and each.sharding == leak.data.get("sharding")]
    return alike[0] if alike else None


def _leaked_arrays(case: Case) -> OomCause | None:
    if not case.groups:
        return None
    first, *rest = case.groups
    others = [each.count for each in rest if each.share > 0.02]
    stands_out = first.count >= 3 * max(others, default=0)
    if first.count < LEAK_COUNT or first.share < LEAK_SHARE or not (case.growing or stands_out):
        return None
    if case.wanted is not None and case.wanted > (case.limit or case.wanted):
        return None
    evidence = [group_line(first)]
    if case.growing:
        evidence.append("The bytes of live arrays grew from sample to sample until the end.")
    return OomCause(
        cause="leaked_arrays",
        summary=f"{first.count:,} equal arrays, {first.shape}, hold {human(first.bytes)}: it looks like a list, "
        "dictionary or history that keeps one per step.",
        advice="Find what they are appended to (losses, metrics, outputs, states kept for later) and "
        "keep only `float(x)` or `jax.device_get(x)` of what is needed, or delete the rest. "
        "If they are the layers of a model, this is its size: shard it.",
        evidence=tuple(evidence),
    )


def _replicated_arrays(case: Case) -> OomCause | None:
    whole = [each for each in case.groups if each.replicated]
    held, share = sum(each.bytes for each in whole), sum(each.share for each in whole)
    if share < LARGE_SHARE or not live_matters(case):
        return None
    devices = max(each.devices for each in whole)
    saved = sum(each.bytes - each.bytes // each.devices for each in whole)
    return OomCause(
        cause="replicated_arrays",
        summary=f"Arrays of {human(held)} are replicated on each of {devices} devices; sharded they would take "
        f"{human(held - saved)} on each.",
        advice="Shard them over the mesh: jax.device_put(x, NamedSharding(mesh, "
        "PartitionSpec('axis', ...))), or out_shardings of the function that creates them; "
        "parameters and optimizer state as in FSDP.",
        evidence=tuple(group_line(each) for each in whole[:3]),
    )


def _fragmentation(case: Case) -> OomCause | None:
    block = case.device.largest_free_block_bytes if case.device is not None else None
    if case.wanted is None or case.free is None or case.free < case.wanted or case.on_host:
        return None
    if (block is None and case.event.free_bytes is None) or (block is not None and block >= case.wanted):
        return None
    largest = f", but the largest free piece is {human(block)}" if block is not None else ", but not in one piece"
    return OomCause(
        cause="fragmentation",
        summary=f"{human(case.free)} is free, more than the {human(case.wanted)} requested{largest}.",
        advice="Create the large arrays first and keep them; donate the state so that it is replaced "
        "in place; avoid many sizes. On a GPU, TF_GPU_ALLOCATOR=cuda_malloc_async defragments "
        "memory; keep preallocation on.",
        evidence=(f"Free {human(case.free)}, wanted {human(case.wanted)}{largest}.", *flag_lines(case)),
    )


def _executables(case: Case) -> OomCause | None:
    if case.on_host or case.in_use is None or case.live is None or not case.limit:
        return None
    gap = case.in_use - case.live
    if case.executables < MANY_EXECUTABLES or gap < LARGE_SHARE * case.limit:
        return None
    return OomCause(
        cause="executables",
        summary=f"{human(gap)} in use belongs to no live array, and {case.executables:,} programs were compiled: "
        "each keeps memory on the device.",
        advice="Stop the recompilations first (`jaxobs explain`, or the findings in "
        "/api/v1/events?kind=finding): bucket the shapes. jax.clear_caches() frees existing "
        "programs.",
        evidence=(f"In use {human(case.in_use)}, live arrays {human(case.live)}.",),
    )


def _host_limit(case: Case) -> OomCause | None:
    host = case.event.host
    limit, total = host.get("limit"), host.get("total")
    if not case.on_host or limit is None or total is None or limit >= total:
        return None
    if case.wanted is not None and case.wanted > total:
        return None
    return OomCause(
        cause="host_limit",
        summary=f"This process may use {human(limit)} of the host's {human(total)}.",
        advice="Raise the limit of the container (resources.limits.memory) or of the process (ulimit -v), or use "
        "less: see the live arrays below.",
        evidence=(f"Resident {human(host.get('resident', 0))}, limit {human(limit)}.",),
    )


def _live_arrays(case: Case) -> OomCause | None:
    if not case.groups or not live_matters(case):
        return None
    held = case.live or sum(each.bytes for each in case.groups)
    state = case.event.program.get("argument", 0) + case.event.program.get("output", 0)
    evidence = [group_line(each) for each in case.groups[:3]]
    if state:
        evidence.append(f"The program's own arguments and outputs are {human(state)} of it.")
    return OomCause(
        cause="live_arrays",
        summary=f"Live arrays hold {human(held)}{'' if case.limit is None else f' of {human(case.limit)}'}.",
        advice="Delete what is no longer needed, donate what a step replaces (donate_argnums), keep "
        "copies on the host, use bfloat16 where it suffices, or shard over more devices.",
        evidence=tuple(evidence),
    )


def _unknown(case: Case) -> OomCause:
    return OomCause(
        cause="unknown",
        summary="The available figures do not show the cause.",
        advice="Compare the requested bytes with the devices and the live arrays in this report. For "
        "the program's own needs: `jitted.lower(*args).compile().memory_analysis()`.",
        evidence=tuple(each for each in (wanted(case),) if each),
    )


RULES: tuple[Callable[[Case], OomCause | None], ...] = (
    cannot_start, _absurd_request, _leak_that_was_found, seen_by_the_driver, _program_too_large, _leaked_arrays,
    _replicated_arrays, _fragmentation, probably_another, _executables, _host_limit, _live_arrays,
)  # fmt: skip
"""In the order of how sure they are when they speak."""
