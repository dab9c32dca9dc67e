"""Plays ordinary weeks to the rules as they are generated, and counts the pages and tickets: there should be none.

python -m tools.weeks                                       # a week of each fleet: a quarter of an hour
python -m tools.weeks --fleet serving --seed 7
python -m tools.weeks --days 1 --processes 30               # less of it
python -m tools.weeks --markdown docs/alerts.md             # writes rows into the table there

What happens and when is drawn by chance from the seed. Needs Go, which fetches and builds parts of Prometheus.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.weeks import table
from tools.weeks.gaps import DAY
from tools.weeks.playing import FLEETS, play


def main() -> int:
    """Prints a line for each fleet and what it was sent; 1 if anybody was paged or a ticket was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleet", choices=FLEETS, help="by default all of them")
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--processes", type=int, default=1000, help="of the training fleet; others have no more either")
    parser.add_argument("--seed", type=int, default=0, help="of the first week")
    parser.add_argument("--weeks", type=int, default=1, help="each with the next seed")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write rows into the table in this page")
    args = parser.parse_args()
    played = []
    for fleet in [args.fleet] if args.fleet else FLEETS:
        for seed in range(args.seed, args.seed + args.weeks):
            found = play(fleet, round(args.days * DAY), args.processes, seed)
            played.append(found)
            print(
                f"{fleet}, seed {seed}: {found.pages} pages and {found.tickets} tickets in {args.days:g} days; "
                f"{found.processes:,} processes, {found.at_once:,} at once; {found.series:,} series, "
                f"{found.samples:,} samples ({found.seconds:.0f} s)"
            )
            for each in found.sent:
                print(f"    {each}")
            sys.stdout.flush()
    if args.markdown:
        table.write(args.markdown, played)
    return 1 if any(each.sent for each in played) else 0


if __name__ == "__main__":
    sys.exit(main())
