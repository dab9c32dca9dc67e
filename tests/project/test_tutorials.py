"""The tutorials hold as they stand: somebody who saves their files and types their commands sees what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import tutorials
from helpers.paths import ROOT
from helpers.requirements import program

LONGEST = 1500.0


@pytest.mark.slow
@pytest.mark.timeout(LONGEST + 60)
@pytest.mark.parametrize("page", tutorials.PAGES)
def test_a_tutorial_holds(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in ("prometheus", "prometheus-alertmanager"):
        assert f"$ {name} " not in text or program(name)
    seen = list(tutorials.follow(page, tmp_path, LONGEST))
    assert [missing for shown, printed in seen if (missing := tutorials.words(shown) - tutorials.words(printed))] == []
    assert len(seen) >= 4
