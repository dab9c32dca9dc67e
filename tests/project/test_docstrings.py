"""`python -m tools.docstrings`: which docstrings and loops it refuses, and where it looks."""

from pathlib import Path

import pytest

from tools import docstrings

LOOP = "`for each in` has a body of several lines: name what it goes through"


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ('"""Of one report."""', [(1, "the docstring begins with `Of`: name its subject")]),
        ('x = 1\n"""What a step takes."""', [(2, "the docstring begins with `What`: name its subject")]),
        (
            'def f():\n    """\n    Whether it is over.\n    """',
            [(2, "the docstring begins with `Whether it`: name its subject")],
        ),
        ("for each in rows:\n    print(each)\n    print()", [(1, LOOP)]),
        ("for each in rows:\n    print(\n        each,\n    )", [(1, LOOP)]),
        ('"""Summary of one report."""', []),
        ('"""Offset in bytes."""', []),
        ('"""Whether items are counted."""', []),
        ('text = "What a step takes."', []),
        ("for each in rows:\n    print(each)", []),
        ("for row in rows:\n    print(row)\n    print()", []),
        ("print([each for each in rows])", []),
    ],
)
def test_faults(source: str, faults: list[tuple[int, str]]) -> None:
    """A docstring that leans on the line above, wherever one may be, and a long loop over `each`; nothing else."""
    assert list(docstrings.faults(source)) == faults


def test_the_repository_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("jaxobs/base", "jaxobs/exempt", *docstrings.CHECKED[1:]):
        (tmp_path / name).mkdir(parents=True)
    for name in ("jaxobs/base", "jaxobs/exempt"):
        (tmp_path / name / "module.py").write_text('"""That one."""\n')
    monkeypatch.setattr(docstrings, "ROOT", tmp_path)
    monkeypatch.setattr(docstrings, "EXEMPT", {"jaxobs/exempt": "because"})
    assert docstrings.main([]) == 1
    assert capsys.readouterr().out == "jaxobs/base/module.py:1: the docstring begins with `That`: name its subject\n"
    assert docstrings.main([str(tmp_path / "jaxobs" / "exempt")]) == 1
    assert docstrings.main([str(tmp_path / "tests")]) == 0


def test_what_is_exempt_is_there() -> None:
    """A folder that was moved or removed is not exempt for ever."""
    assert [name for name in docstrings.EXEMPT if not (docstrings.ROOT / name).is_dir()] == []
