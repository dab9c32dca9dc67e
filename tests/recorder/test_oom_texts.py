"""Every wording of out-of-memory errors that the references and users' reports have, and what it is read as."""

import re
import tomllib
from pathlib import Path

import pytest

from jaxobs.recorder.oom_texts import human, is_out_of_memory, parse, size

K, M, G, T = UNITS = 1024, 1024**2, 1024**3, 1024**4
WORDINGS = tomllib.loads(Path(__file__).with_name("wordings.toml").read_text(encoding="utf-8"))["memory"]
TEXTS = {each["name"]: each["text"] for each in WORDINGS if "name" in each}
WARNING = (
    "2025-05-18 21:59:55.086788: W external/xla/xla/tsl/framework/bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out "
    "of memory trying to allocate 3.37GiB with freed_by_count=0. The caller indicates that this is not a failure, but "
    "this may mean that there could be performance gains if more memory were available."
)


def figure(told: str | int) -> str | int | None:
    """A figure of the table: bytes, or with a unit; any other word is itself."""
    found = re.fullmatch(r"([\d.]+)([KMGT])", str(told))
    return round(float(found[1]) * UNITS["KMGT".index(found[2])]) if found else None if told == "none" else told


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda each: each["text"][:40])
def test_figures(wording: dict[str, dict[str, str | int]]) -> None:
    """Each wording gives its stage and its figures, and whatever stands around it changes nothing."""
    expected = {name: figure(told) for name, told in wording["read"].items()}
    for around in ("{}", "jax.errors.JaxRuntimeError: {}", "a line before\n{}\nThe stack trace below excludes frames."):
        found = parse(around.format(wording["text"]))
        assert found is not None
        assert {name: getattr(found, name) for name in expected} == expected
        assert not found.harmless


def test_listed_buffers_of_a_tpu() -> None:
    """The compiler's list gives operator, shape, size and padding of each buffer; sections come from its totals."""
    found = parse(TEXTS["tpu"])
    assert found is not None
    first, second = found.buffers
    assert (first.size, first.unpadded, first.padding) == (14 * G, round(1.09 * G), round(12.91 * G))
    assert first.operator == "jit(train_step)/jit(main)/one_hot"
    assert (first.shape, first.allocation) == ("s32[29360128,10]{1,0:T(8,128)}", "HLO temp")
    assert second.operator is not None and second.operator.startswith("%fusion.20231 = bf16")
    assert found.sections["temp"] == round(47.5 * G) and found.sections["argument"] == round(15.8 * G)


def test_listed_buffers_of_a_gpu() -> None:
    """The runtime's statistics give parameter, output and temp bytes; its buffers tell parameters from temporaries."""
    found = parse(TEXTS["gpu"])
    assert found is not None
    assert found.sections == {
        "argument": round(5.43 * G), "constant": round(38.7 * K), "output": round(1.73 * G),
        "temp": round(32.51 * G), "total": round(39.68 * G), "fragmentation": round(1.73 * G),
    }  # fmt: skip
    first, second = found.buffers
    assert (first.operator, first.shape) == ("jit(apply_fn)/jit(main)/alphafold/mul", "f32[128,2605,2605]")
    assert (second.size, second.allocation, second.shape) == (384 * K, "parameter", "f32[256,128,3]")


def test_allocator_warning_is_harmless_unless_a_failure_follows() -> None:
    alone = parse(WARNING)
    assert alone is not None and alone.harmless and alone.wanted == round(3.37 * G) and alone.ordinal == 0
    followed = parse(f"{WARNING}\n{TEXTS['gpu']}")
    assert followed is not None and not followed.harmless


@pytest.mark.parametrize(
    "text",
    [
        "RESOURCE_EXHAUSTED: Received message larger than max (20971520 vs. 4194304)",
        "RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Requests'",
        "INVALID_ARGUMENT: Executable expected shape f32[4] but got f32[8]",
        "Incompatible shapes for broadcasting: shapes=[(3,), (4,)]",
        "failed to allocate a port",
        "",
    ],
)
def test_others_are_left_alone(text: str) -> None:
    """The status alone does not make an error of memory: gRPC uses it as well."""
    assert not is_out_of_memory(text) and parse(text) is None


def test_sizes() -> None:
    """XLA's units are powers of 1024 whether written K, KiB or not at all, and `human` writes them back."""
    read = [size("1.5", unit) for unit in ("K", "KiB", "G", "GiB", "bytes", None)]
    assert read == [1536, 1536, 3 * G // 2, 3 * G // 2, 2, 2]
    written = [human(n) for n in (0, 512, 1536, 20 * M, 4 * 1024 * T)]
    assert written == ["0 B", "512 B", "1.50 KiB", "20.0 MiB", "4.00 PiB"]
