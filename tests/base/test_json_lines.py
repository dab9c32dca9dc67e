"""A damaged line costs that line; what is read is bounded."""

import io
import json
import tracemalloc

import pytest

from jaxobs.base import json_lines
from jaxobs.base.json_lines import Damage


@pytest.mark.parametrize(
    "line",
    [
        b"\0" * 512, b"hello", b'{"a": 1', b'{"a": "\xff"}', b"[1]", b"3", b"null", b'"text"', b'{"a": NaN}',
        b'{"a": Infinity}', b'{"a": 1e999}', b'{"a": -1e999}', b'{"a": 1' + b"0" * 400 + b"}",
        b'{"a": 18446744073709551616}', b'{"a":\t-18446744073709551616}', b'{"a": 1E+0999}',
        b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": "' + b"x" * json_lines.MOST_LINE + b'"}', b'{"a": "' + b"x" * 2 * json_lines.MOST_LINE + b'"}',
    ],
    ids=lambda line: repr(line[:20]),
)  # fmt: skip
def test_a_damaged_line_costs_that_line(line: bytes) -> None:
    damage = Damage()
    data = b"\xef\xbb\xbf" + b'{"n": 1}\r\n' + line + b'\n\n{"n": 2}\n{"n": 3'
    assert [body for _, body in json_lines.objects(io.BytesIO(data), damage)] == [{"n": 1}, {"n": 2}]
    assert (damage.count, damage.lines) == (2, [2, 5])
    assert damage.sentence().startswith("Skipped 2 damaged lines (lines 2, 5): the first ")


def test_what_is_valid_is_read() -> None:
    """Up to the bounds; the last of two equal keys wins, as everywhere in Python."""
    value = {"a": [2**64 - 1, -(2**63), 1e308, 5e-324, {"b": [[]]}], "c": "1e999 \0", "d": "9" * 30}
    assert json_lines.loads(json.dumps(value)) == value
    assert json_lines.loads('{"a": 1, "a": 2}') == {"a": 2}
    assert json_lines.loads("[" * json_lines.MOST_DEPTH + "]" * json_lines.MOST_DEPTH)
    assert Damage().sentence() == ""


@pytest.mark.parametrize("value", ["[]", '{"a":1}', "1e9", '"ab"'])
def test_a_text_of_many_values_takes_no_memory(value: str) -> None:
    """A list of two bytes takes 64 as an object; the line of 16 MB that holds millions costs that line."""
    line = f"[{','.join([value] * json_lines.MOST_VALUES)},1]".encode()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"^it has more than 2,000,000 values$"):
            json_lines.loads(line)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert json_lines.loads(f"[{'1,' * (json_lines.MOST_VALUES - 1)}1]")[-1] == 1


def test_many_damaged_lines_are_counted() -> None:
    damage = Damage()
    assert not list(json_lines.objects(io.BytesIO(b"x\n" * 1234), damage))
    assert damage.sentence() == "Skipped 1,234 damaged lines (lines 1, 2, 3, 4, 5, ...): the first is not valid JSON."


@pytest.mark.parametrize(
    ("bounds", "last"),
    [({"MOST_LINES": 8}, 4), ({"MOST_READ": 16}, 4), ({"MOST_LINES": 8, "_BLOCK": 12, "_MOST_BLOCKS": 3}, 2)],
    ids=lambda value: str(value),
)
def test_of_a_file_that_is_too_long_both_ends_are_read(
    bounds: dict[str, int], last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its lines, by their values, and by the bytes behind the first half; fifty million lines took minutes."""
    for name, most in bounds.items():
        monkeypatch.setattr(json_lines, name, most)
    file = io.BytesIO(b"".join(b'{"n": %4d}\n' % number for number in range(1, 1001)))
    damage = Damage()
    found = list(json_lines.objects(file, damage))
    assert [number for number, _ in found] == [1, 2, 3, 4, *range(1001 - last, 1001)]
    assert all(body == {"n": number} for number, body in found)
    assert damage.sentence() == f"Left out lines in the middle, from line 5 on: {996 - last}."
