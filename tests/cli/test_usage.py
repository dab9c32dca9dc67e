"""Lines that no command can use: exit code 2, and a sentence with the nearest word, or with what is wrong."""

from pathlib import Path

import pytest

from jaxobs import cli

LINES = Path(__file__).with_name("unusable_lines.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("row", LINES)
def test_a_line_that_cannot_be_used(row: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, said = map(str.strip, row.split(" => "))
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "bad.json").write_text("{" * 100_000)
    try:
        code: object = cli.main(line.replace("{}", str(tmp_path)).split())
    except SystemExit as exit:
        code = exit.code
    assert code == 2
    assert said in capsys.readouterr().err
