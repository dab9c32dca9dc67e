"""`python -m benchmarks.corpus`: runs the corpus under every JAX; `--write` writes `docs/causes.md`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks.corpus.page import PAGE, measure, page
from tools.environments import MATRIX, NoInterpreterError


def main() -> int:
    """1 if jaxobs was wrong somewhere."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/causes.md")
    args = parser.parse_args()
    reports: dict[str, dict[str, Any]] = {}
    failed = 0
    for row in MATRIX:
        try:
            report = measure(row)
        except NoInterpreterError as error:
            print(f"{row.id}: left out. {error}", file=sys.stderr)
            continue
        wrong = [verdict["id"] for verdict in report["verdicts"] if verdict["problems"]]
        failed += len(wrong)
        print(
            f"{row.id}: {len(report['verdicts'])} programs{''.join(f'; wrong: {each}' for each in wrong)}", flush=True
        )
        reports[report["jax"]] = report
    if args.write:
        PAGE.write_text(page(reports), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
