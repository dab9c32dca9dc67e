"""The published JSON Schema of the events holds what real programs log, and nothing that it does not know."""

import json
import textwrap
from typing import Any

import jsonschema
import pytest
from helpers import run_programs
from helpers.paths import ROOT

from jaxobs.facts.kinds import event_types

SCHEMA = json.loads((ROOT / "docs" / "reference" / "events.schema.json").read_text(encoding="utf-8"))

PROGRAMS = {
    "training": """
        import jax, jax.numpy as jnp, numpy as np, jaxobs, time

        @jaxobs.jit
        def step(weights, batch, flag=True):
            return weights - 0.1 * jnp.mean(batch), jnp.mean(batch) * (1.0 if flag else 2.0)

        jax.config.update("jax_compilation_cache_dir", "cache")
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        weights, keep = jnp.zeros(4), []
        for number in range(40):
            with jaxobs.step("train", items=8):
                size = 4 + number % 6
                weights, loss = step(weights, jax.device_put(np.ones((size, 4), np.float32)))
                keep.append(jnp.ones((number + 1, 1000)))
                float(loss)
            jaxobs.watch(loss=loss if number < 30 else loss * jnp.nan)
            time.sleep(0.02)
        with jaxobs.phase("checkpoint"):
            jax.clear_caches()
            step(jnp.zeros(4), jnp.ones((4, 4)))
        """,
    "an error": """
        import jax, jax.numpy as jnp, jaxobs

        @jaxobs.jit
        def broken(x):
            return x.reshape(3, 7)

        try:
            broken(jnp.ones(4))
        except TypeError:
            pass
        broken(jnp.ones(5))
        """,
    "a capture, a profile and out of memory": """
        import jax, jax.numpy as jnp, os, signal, time, jaxobs
        jaxobs.start(port=0, sample_interval=0.1)
        f = jaxobs.jit(lambda x: x * 2)
        f(jnp.ones(3)).block_until_ready()
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(2)
        jaxobs.install(profile_interval=0.05)
        while jaxobs.snapshot().profile is None:
            f(jnp.ones(3)).block_until_ready()
            time.sleep(0.01)
        huge = jaxobs.jit(lambda x: jnp.broadcast_to(x, (2**45,)) * 2)
        try:
            huge(jnp.ones(())).block_until_ready()
        except Exception:
            pass
        """,
}


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    found = []
    for number, program in enumerate(PROGRAMS.values()):
        folder = tmp_path_factory.mktemp(f"program{number}")
        path = folder / "events.jsonl"
        start = f"import os; os.chdir({str(folder)!r})\nimport jaxobs; jaxobs.install()\n"

        ended = run_programs.run(
            start + textwrap.dedent(program), JAXOBS_EVENT_LOG=str(path), JAXOBS_TRANSFERS="1", PYTHONPATH=str(ROOT),
            JAXOBS_SAMPLE_INTERVAL="0.1", JAXOBS_CAPTURE_SIGNAL="memory",
        )  # fmt: skip
        lines = run_programs.events(path)
        assert lines, ended.stderr
        found += lines
    return found


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"})


def closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(each) for name, each in schema.items()}
    return made | {"additionalProperties": False} if "properties" in schema else made


def test_it_is_a_schema_of_every_event() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(event_types()) < set(SCHEMA["$defs"])
    assert len(SCHEMA["$defs"]["event"]["oneOf"]) == len(event_types())


@pytest.mark.slow
def test_what_real_programs_log_is_in_it(logged: list[dict[str, Any]]) -> None:
    strict = {
        name: jsonschema.Draft202012Validator({"$defs": closed(SCHEMA["$defs"]), "$ref": f"#/$defs/{name}"})
        for name in event_types()
    }
    whole = validator("event")
    for line in logged:
        assert [
            f"{line['event']}: {each.json_path}: {each.message}" for each in strict[line["event"]].iter_errors(line)
        ] == []
    for kind in {line["event"] for line in logged}:
        assert whole.is_valid(next(line for line in logged if line["event"] == kind))
    missing = set(event_types()) - {line["event"] for line in logged}
    assert missing == set(), missing


@pytest.mark.slow
def test_what_is_damaged_is_not_in_it(logged: list[dict[str, Any]]) -> None:
    for name in event_types():
        line = next(each for each in logged if each["event"] == name)
        for field in ("time", "event", "sequence", "pid"):
            assert not validator(name).is_valid({key: value for key, value in line.items() if key != field})
        assert not validator(name).is_valid({**line, "sequence": "first"})
        assert not validator("event").is_valid({**line, "event": "nonsense"})
