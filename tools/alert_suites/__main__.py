"""The lives and the deaths as tables between two marks in `docs/alerts.md`.

python -m tools.alert_suites            writes them
python -m tools.alert_suites --check    writes nothing; exits with 1 if they are not there as they would be written
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from tools.alert_suites.deaths import deaths
from tools.alert_suites.lives import lives

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "alerts.md"
_PART = re.compile(r"(<!-- lives: begin -->\n).*?(<!-- lives: end -->)", re.DOTALL)


def page() -> str:
    """The page with the tables in it.

    Raises:
      LookupError: the page has no marks.
    """
    text = PAGE.read_text(encoding="utf-8")
    found = _PART.search(text)
    if found is None:
        raise LookupError(f"{PAGE} has no marks `<!-- lives: begin -->` and `<!-- lives: end -->`.")
    return text[: found.start()] + found[1] + _tables() + found[2] + text[found.end() :]


def _tables() -> str:
    quiet = "".join(f"| {life.what} | nothing | {_seen(life.live)} |\n" for life in lives())
    noticed = "".join(
        f"| {death.what} | [{death.alert}](../runbooks/{death.alert}.md) | "
        f"{'page' if death.severity == 'critical' else 'ticket'} | {death.within} min | {_seen(death.live)} |\n"
        for death in deaths()
    )
    return (
        "<!-- Written by `python -m tools.alert_suites`. Do not edit. -->\n"
        f"\n### Ordinary life: {len(lives())} kinds\n\n| life | alert | seen |\n|---|---|---|\n{quiet}"
        f"\n### Deaths and decay: {len(deaths())} kinds\n\n| death | alert | what it is | within | seen |\n"
        f"|---|---|---|---:|---|\n{noticed}\n"
    )


def _seen(live: str) -> str:
    return "simulated and live" if live else "simulated"


def main() -> int:
    """Writes the tables, or checks them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check, wanted = parser.parse_args().check, page()
    if PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    if check:
        print(f"{PAGE.name} is stale: run `python -m tools.alert_suites`")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
