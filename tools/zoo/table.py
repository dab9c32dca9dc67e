"""The table of the zoo, for the documentation."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping

from tools.environments import Row
from tools.zoo.comparing import BY_COST, Result, shown
from tools.zoo.entry import Entry, Finding, FirstTry
from tools.zoo.running import ROOT, program_of

_HEAD = """<!-- Written by `python -m tools.zoo --markdown docs/zoo.md`. Do not edit. -->

# The zoo

{programs} programs of {projects} projects, written as users of these libraries write them, with packaged or made-up
data. The programs in `examples/systems` are the examples of [the systems that people run](systems/README.md). Each
program has an entry in `tools/zoo/known`, written before anybody read the output of jaxobs: how often each function
compiles and why, the findings, the training loop and its steps. We corrected an entry later only if JAX's own log of
compilations, or the definition of a cause, proved it wrong. `make test-zoo` runs each program with `jaxobs run` and
without. It fails if a rule below does not hold, also in a second run, and the entry does not list the difference:

- standard output and exit code are the same, and standard error has no additional line;
- JAX compiles as many programs as without jaxobs, and the event log has as many;
- causes, findings, loop and verdict are those of the entry, and there are no others;
- each category of time differs from a stopwatch in the program by at most 5 % of the process's time;
- no sentence contradicts its own facts.

{tries}

| program | project | someone who knows it says | jaxobs says | agrees |
|---|---|---|---|---|
"""


ROUNDS: list[dict[str, FirstTry]] = [
    {
        "auc_each_step": FirstTry("right"),
        "bayesian_optimisation": FirstTry(
            "half", "five findings for one fault, and no loop of 36 turns that all compile"
        ),
        "compressed_results": FirstTry("right"),
        "donated_average": FirstTry("right"),
        "double_precision": FirstTry("right"),
        "ensemble_early_stop": FirstTry("right"),
        "gradient_norms": FirstTry("half", "`host_sync` as well, for seconds that `host_bound` has"),
        "grain_prefetched": FirstTry("right"),
        "hard_examples": FirstTry("half", "four findings for one fault, a line that picks rows by a mask"),
        "keras_folds": FirstTry("half", "a finding for `train_step` and one for `test_step`, which are one fault"),
        "linen_batchnorm": FirstTry("right"),
        "nnx_accumulated": FirstTry("right"),
        "process_sweep": FirstTry("right"),
        "shard_map_eight": FirstTry("wrong", "`host_sync` on a sound program: on CPUs the call itself computes"),
    },
    {
        "decoding_by_position": FirstTry("half", "`no_persistent_cache` as well, for seconds that `static_values` has"),
        "ragged_last_batches": FirstTry(
            "wrong", "`fix` for a last batch that compiled once, 15 % of a run of a minute"
        ),
        "parsed_in_a_thread": FirstTry("half", "`watch` for a wait of 57 %, and to load ahead, as the program does"),
        "model_per_store": FirstTry("half", "`eager_initialization` as well, of the same objects that are made again"),
        "predictions_one_by_one": FirstTry("half", "`watch` for a prediction per turn that takes 61 %, at its line"),
        "idle_batching_service": FirstTry(
            "wrong", "`watch`: 96 % unknown, between requests that no server is known of"
        ),
        "losses_without_jit": FirstTry("wrong", "the cost of compiling alone: a jitted function hid the loop"),
        "swept_widths": FirstTry("wrong", "`fix` for a weak type that costs 9 %, in two findings"),
        "averaged_on_the_host": FirstTry("right"),
        "filling_replay": FirstTry("right"),
        "early_nan": FirstTry("right"),
        "kept_frames": FirstTry("half", "a second finding for numbers that the same list keeps"),
        "saved_in_the_background": FirstTry("wrong", "`watch` for a compilation that took 7 % of the time in the end"),
        "pickled_checkpoints": FirstTry("half", "`watch` for saves that take 61 %, at their line"),
        "lengths_over_http": FirstTry("half", "`no_persistent_cache` as well, for seconds that `unbounded_shapes` has"),
        "callback_and_configs": FirstTry("half", "the configurations, and not the callback, which took 10 %"),
        "sampled_in_a_scan": FirstTry("wrong", "`watch`: 74 % unknown, in which the devices computed for one call"),
        "unrolled_cells": FirstTry("right"),
        "data_in_the_program": FirstTry("wrong", "the operations that clearing caches compiles, and not the functions"),
        "early_stopping": FirstTry("right"),
    },
    {
        "lists_of_steps": FirstTry("right"),
        "melodies_with_a_cache": FirstTry("right"),
        "batches_that_wait": FirstTry("half", "`watch` for a batching wait of 87 %, at its line: it may serve"),
        "lines_by_scipy": FirstTry("wrong", "`ok`: SciPy's finite differences were steps"),
        "glacier": FirstTry("right"),
        "cleared_trials": FirstTry("right"),
        "samplers_by_region": FirstTry("right"),
        "image_tower": FirstTry("right"),
        "doses_as_floats": FirstTry("right"),
        "validated_each_step": FirstTry("wrong", "a small finding, not the evaluation that took 77 %"),
        "scene_to_workers": FirstTry("right"),
        "tides": FirstTry("half", "`watch` for an initialization of 1.8 s in a run of 12 s"),
        "averaged_snapshots": FirstTry("wrong", "`ok`: 700 MB were kept for 5 s, between two samples"),
        "tables_by_callback": FirstTry("right"),
        "quotes_over_asyncio": FirstTry("right"),
        "empty_fingerprints": FirstTry("right"),
        "saved_each_step": FirstTry("half", "`watch` for checkpoints of 68 %, without their line"),
        "vectors_on_the_host": FirstTry("half", "a likely leak of host memory as well, which was none"),
        "arm_behind_a_socket": FirstTry("half", "two findings for one line, of two loops"),
        "ridge_sweep": FirstTry("right"),
    },
    {
        "digits_by_vae": FirstTry("right"),
        "static_epochs": FirstTry("right"),
        "augmented_in_a_pool": FirstTry("right"),
        "filtered_series": FirstTry("right"),
        "models_in_threads": FirstTry(
            "half", "`ok`, as it should, with 94 % unattributed: no thread of several was followed"
        ),
        "prefixes_that_grow": FirstTry("right"),
        "folded_table": FirstTry(
            "wrong", "a persistent cache, not the constant that XLA computed with for two minutes"
        ),
        "pendulums_by_step": FirstTry("half", "`ok` in a run of 6 s, of which Python took a fourth"),
        "errors_row_by_row": FirstTry("wrong", "`ok` in a run of 9 s, of which reading 120,000 numbers took a fourth"),
        "restarts_that_compile": FirstTry("half", "two findings for two functions that one call makes again"),
        "scores_twice_a_second": FirstTry("half", "`watch` for the pause of a loop that polls a database"),
        "augmented_eagerly": FirstTry("wrong", "`ok` in a run of 5 s, of which single operations took half"),
        "saved_at_the_end": FirstTry("right"),
        "padded_graphs": FirstTry("right"),
    },
    {
        "self_supervised": FirstTry("half", "dispatching not told beside what compiled in so short a run"),
        "unrolled_meta_learning": FirstTry("right"),
        "keras_predict_in_loop": FirstTry("right"),
        "distillation": FirstTry(
            "half", "two findings for one fault; that the teacher computes the same again is not seen"
        ),
        "bucketed_names": FirstTry("half", "`watch` for 1.4 s of a start"),
        "eigenvectors_each_epoch": FirstTry("half", "`watch`, since devices compute meanwhile"),
        "workers_each_epoch": FirstTry("half", "advises more workers, which start no faster"),
        "diffusion_one_key": FirstTry("half", "a key that never changes is not seen"),
        "physics_informed": FirstTry("half", "`watch` for 0.9 s of a start"),
        "critic_and_generator": FirstTry("right"),
        "neighbour_list": FirstTry("right"),
        "path_tracer": FirstTry("right"),
        "temperature_of_users": FirstTry("right"),
        "one_lock_of_workers": FirstTry("half", "`watch`, and the lock of the workers is not named"),
        "live_monitor": FirstTry("wrong", "waits for a source that keeps a pace, as for a slow loader"),
        "weeks_of_a_series": FirstTry("right"),
        "evolution_of_a_plant": FirstTry("wrong", "`ok` where callbacks take the time"),
        "waveform_inversion": FirstTry("right"),
        "scan_of_a_solver": FirstTry("half", "a results file that is written anew for each trial is not named"),
        "option_prices": FirstTry("wrong", "`ok` where 2.6 GB are kept, and all batches are the same"),
    },
    {
        "floats_of_a_module": FirstTry("right"),
        "cnn_with_metrics": FirstTry("right"),
        "scores_so_far": FirstTry("right"),
        "lock_of_an_episode": FirstTry("half", "advises a faster queue, where another thread holds a lock"),
        "hierarchical_nuts": FirstTry("wrong", "`fix` for operations of NumPyro, 22 % of a run of half a minute"),
        "update_outside_of_jit": FirstTry("right"),
        "neural_ode_epochs": FirstTry("half", "`watch` for 2.7 s of a start"),
        "plan_by_reduce": FirstTry("right"),
        "best_so_far_compressed": FirstTry("half", "`watch` for saves that take twice as long as the steps"),
        "ppo_in_one_jit": FirstTry("right"),
    },
    {
        "annealed_vae": FirstTry("right"),
        "nnx_checkpoints": FirstTry("half", "`watch` for building the model, 10 % of a run of 20 s"),
        "eager_replay_buffer": FirstTry(
            "half", "the lines, and to put them under jit, but not that they copy the buffer"
        ),
        "cholesky_in_each_step": FirstTry(
            "wrong", "`watch` for NumPyro's own operations, and none of the factorisation"
        ),
        "heat_by_elements": FirstTry("half", "`watch` for an assembly of 920 ms, 11 % of a run of 8 s"),
        "cond_under_vmap": FirstTry("wrong", "`ok`: steps that compute a branch which is not taken are steps"),
        "rolled_clips": FirstTry("right"),
        "haiku_spawned_worker": FirstTry("right"),
        "unrolled_denoising": FirstTry("right"),
        "batched_generation": FirstTry("right"),
    },
    {
        "poisson_by_nuts": FirstTry("half", "`watch` for compilations that such a short run cannot do without"),
        "annealed_static_field": FirstTry("half", "a finding for each of the two functions that get the same value"),
        "batches_of_three_clients": FirstTry("half", "`watch` for a wait of 62 %, and to fill the queue faster"),
        "nnx_resnet": FirstTry("right"),
        "newton_with_closures": FirstTry("right"),
        "gzipped_checkpoints": FirstTry("half", "the saves, behind the start, which cost more in a run of 30 s"),
        "cached_by_epoch": FirstTry(
            "wrong", "`watch` for the sampling, and none of 900 MB that a cache keeps on the host"
        ),
        "oscillators_in_slices": FirstTry("right"),
        "neighbour_lists_under_vmap": FirstTry(
            "wrong", "`watch` for a weak type, and none of a branch always computed"
        ),
        "study_in_one_file": FirstTry("half", "`host_sync` as well, for a value that the search needs"),
    },
    {
        "archive_in_each_batch": FirstTry("half", "the eager start first, which costs less, the wait second"),
        "one_matrix_each_step": FirstTry("wrong", "`ok` over a factorisation that each compiled step repeats"),
        "replay_behind_a_lock": FirstTry("right"),
        "trials_of_an_object": FirstTry("right"),
        "cartpole_without_jit": FirstTry("wrong", "`ok` over 74 % unknown: no loop is found in 1,300 eager turns"),
        "batches_when_they_come": FirstTry("wrong", "`fix` for a service that waits for requests at its queue"),
        "hierarchical_counts": FirstTry("right"),
        "saved_when_better": FirstTry("right"),
        "denoiser_with_a_worker": FirstTry("wrong", "`fix` for the eager start of a run of 19 s"),
        "ranks_by_sorting": FirstTry("right"),
    },
    {
        "locked_rollouts": FirstTry("right"),
        "ticket_loader_thread": FirstTry(
            "half", "`watch` for a short last batch, which recompiles once for a sixth of a healthy short run"
        ),
        "unrolled_until_interrupted": FirstTry("right"),
        "verse_cache_that_grows": FirstTry("right"),
        "turbine_eager_optimizer": FirstTry("right"),
        "alignment_by_elements": FirstTry("right"),
        "denoiser_log_of_samples": FirstTry(
            "wrong", "`ok` over 880 MB of arrays that the run keeps, in the few samples of 20 s"
        ),
        "embedding_batches_on_asyncio": FirstTry("right"),
        "flow_of_fourteen_layers": FirstTry("right"),
        "photons_by_a_mapped_cond": FirstTry(
            "wrong", "`ok`: the account is right, and both sides of a `lax.cond` under `vmap` run"
        ),
    },
    {
        "forecast_row_by_row": FirstTry("wrong", "the process crashed while its stack was read; otherwise right"),
        "ring_of_an_ode": FirstTry("half", "`watch` for the ordinary compilation that a short run cannot do without"),
        "samples_of_a_deque": FirstTry("right"),
        "photons_under_vmap": FirstTry("wrong", "`ok` over a branch that is always computed"),
        "calibrated_by_a_simulator": FirstTry("wrong", "`fix` for a simulator on the host, which is the work itself"),
        "batches_never_full": FirstTry("half", "the eager start first, and the wait that cannot fill a batch second"),
        "resized_for_each_crop": FirstTry("right"),
        "spindles_at_twenty_hertz": FirstTry("half", "`watch` for the pause of a stream that comes at its own pace"),
        "uncentred_years": FirstTry("wrong", "`watch` for the eager start, and none of trees that are too deep"),
        "rows_of_a_compressed_file": FirstTry("right"),
    },
    {
        "digits_with_nnx": FirstTry("wrong", "`fix` for the start of a short run, which is ordinary"),
        "dqn_of_keras_predictions": FirstTry(
            "right", "the line that asks for predictions; it names Python, not `predict`"
        ),
        "scores_under_one_lock": FirstTry("wrong", "`ok`: requests wait for a lock that another thread holds"),
        "planner_at_twenty_hertz": FirstTry("half", "`watch` for the pause with which the loop keeps its rate"),
        "flow_with_all_gradients": FirstTry("wrong", "`ok` over memory that grows: one sample was taken in the loop"),
        "points_refined_each_step": FirstTry(
            "wrong", "`ok` over steps that take four times as long from the middle on"
        ),
        "solubility_without_jit": FirstTry("right"),
        "characters_saved_each_step": FirstTry("right"),
        "doses_in_a_closure": FirstTry("right"),
        "fluid_in_scanned_blocks": FirstTry("right"),
    },
    {
        "spiral_of_an_ode": FirstTry("right"),
        "points_one_by_one": FirstTry("right"),
        "words_merged_in_the_loop": FirstTry("half", "`watch`, and the advice is about a queue; the line is right"),
        "audit_under_a_lock": FirstTry("wrong", "`ok`: a thread that compresses was taken for a thread that waits"),
        "accuracy_each_step": FirstTry("wrong", "`ok`: from the middle on, each step evaluates, which counts as steps"),
        "weights_of_each_step": FirstTry("right"),
        "windows_of_a_card": FirstTry("wrong", "`fix` for the sleep of a stream that comes at its own pace"),
        "saves_waited_for": FirstTry("right"),
        "textures_prefetched": FirstTry("half", "`watch` for the eager start, a fifth of a short run"),
        "digits_drawn_one_by_one": FirstTry("half", "the smaller of two places with operations outside `jit`"),
    },
]
"""First tries on programs that are not in the zoo, by blind round; a round counts in full, whatever was kept of it.
Round 2 ran next to five busy programs for each core, rounds 3 and 4 next to two or three, rounds 8 and 13 next to
tests."""


def markdown(entries: Mapping[str, Entry], results: Mapping[str, Result], before: str = "") -> str:
    """The whole page. Nothing in it depends on the machine.

    Args:
      entries: all programs.
      results: what became of those that ran.
      before: the page so far, which has the rows of the others.
    """
    earlier = {name: line for line in before.splitlines() for name in entries if line.startswith(_start(name, entries))}
    lines = {
        name: f"{_start(name, entries)}{versions(entry)} | {entry.says} | "
        f"{_told(entry, results[name])} | {_verdict(entry, results[name])} |"
        for name, entry in entries.items()
        if name in results
    }
    rows = {name: (earlier | lines)[name] for name in entries if name in earlier or name in lines}
    projects = {entries[name].projects[0] for name in rows}
    tries = textwrap.fill(first_tries(entries)[0], 120, break_on_hyphens=False)
    return _HEAD.format(programs=len(rows), projects=len(projects), tries=tries) + "\n".join(rows.values()) + "\n"


def first_tries(entries: Mapping[str, Entry]) -> list[str]:
    """How often jaxobs was right in its first run, in a sentence, by round, and what it was then not right about."""
    ours = {name: entry.first_try for name, entry in entries.items() if entry.first_try is not None}
    known = {name: tried for group in (ours, *ROUNDS) for name, tried in group.items()}
    return [
        f"For {len(known)} programs, somebody wrote down the right answer before jaxobs saw the program; "
        f"{len(known) - len(ours)} of them are not in this table. In the first run, jaxobs was {_outcomes(known)}. "
        "`python -m tools.zoo --first-tries` lists them.",
        f"{len(ours)} programs of the zoo: {_outcomes(ours)}",
        *(f"round {number}, {len(each)} programs: {_outcomes(each)}" for number, each in enumerate(ROUNDS, 1)),
        f"The newest round, of {len(ROUNDS[-1])} programs: {_outcomes(ROUNDS[-1])}",
        *(f"{name}: {each.outcome}{each.note and f': {each.note}'}" for name, each in known.items()),
    ]


def _outcomes(tried: Mapping[str, FirstTry]) -> str:
    count = Counter(each.outcome for each in tried.values())
    return f"right on {count['right']}, half right on {count['half']} and wrong on {count['wrong']}"


def _start(name: str, entries: Mapping[str, Entry]) -> str:
    return f"| [`{name}`](../{program_of(name).relative_to(ROOT)}) | "


def versions(entry: Entry) -> str:
    """Returns the projects of a program and JAX, with the versions that are pinned."""
    return ", ".join(f"{name} {_version(name, entry.row)}" for name in dict.fromkeys((*entry.projects, "jax")))


def _version(name: str, row: Row) -> str:
    if name == "jax":
        return row.jax
    return next(each.partition("==")[2] for each in row.packages if each.startswith(f"{name}=="))


def _told(entry: Entry, result: Result) -> str:
    said = result.said
    parts = [f"`{function}`: {_causes(said.causes.get(function, {}))}" for function in entry.causes]
    if said.loops and entry.loop is not None:
        name, steps = said.loop(entry.loop.function) or said.loops[0]
        same = name.rpartition(".")[2] == entry.loop.function
        exact = same and (steps is None or abs(steps - entry.loop.steps) <= entry.loop.within)
        parts.append(f"loop `{name}`, {entry.loop.steps if exact else steps} steps")
    elif not said.loops:
        parts.append("no loop")
    parts.append(f"findings: {_findings(tuple(each for each in said.findings if each.id not in BY_COST))}")
    return "; ".join(parts)


def _causes(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{cause} {count}" for cause, count in sorted(causes.items())) or "none"


def _findings(findings: tuple[Finding, ...]) -> str:
    return ", ".join(
        f"{shown(each)} ({count})" if count > 1 else shown(each) for each, count in _counted(findings)
    ) or ("none")


def _counted(findings: tuple[Finding, ...]) -> list[tuple[Finding, int]]:
    """A leak of no function in particular has no name to show."""
    named = (each if each.function != "<unknown>" else Finding(each.id) for each in findings)
    return sorted(Counter(named).items(), key=str)


def _verdict(entry: Entry, result: Result) -> str:
    """Returns the differences of this run, by the reasons that the entry has for them."""
    keys: dict[str, list[str]] = {}
    for key in result.differences:
        keys.setdefault(entry.differs.get(key, "new"), []).append(key.replace("<unknown>", "`<unknown>`"))
    texts = [f"**{', '.join(each)}**: {why}" for why, each in keys.items()]
    return "; ".join(("no", *texts)) if texts else "yes"
