"""`jaxobs generate`: writes what is generated, or checks that it is fresh."""

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from jaxobs.base.errors import SettingError
from jaxobs.ops.monitoring import alerting, generate, openslo, site
from jaxobs.ops.monitoring.generate import kubernetes
from jaxobs.ops.monitoring.site import Site

HELP = "write dashboards, alerts, runbooks, manifests and reference pages, or check them"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("kind", choices=["all", *generate.kinds()], help="what to generate")
    parser.add_argument(
        "--site", type=Path, metavar="FILE", help="site file (TOML or YAML) with your site's differences"
    )
    parser.add_argument("--job", metavar="REGEX", help="only targets whose label `job` matches")
    parser.add_argument(
        "--matcher", action="append", default=[], metavar="LABEL=VALUE", help="only targets with this label; repeatable"
    )
    parser.add_argument(
        "--function", action="append", default=[], metavar="REGEX", help="only functions that match; repeatable"
    )
    parser.add_argument(
        "--slos", type=Path, metavar="FILE", help="OpenSLO file with objectives in addition to the built-in ones"
    )
    parser.add_argument("--runbook-url", metavar="URL", help="address where the runbooks will be")
    parser.add_argument("--grafana-url", metavar="URL", help="address of Grafana")
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="write into this directory")
    parser.add_argument("--check", action="store_true", help="write nothing; list what is out of date and exit with 1")


def run(args: argparse.Namespace) -> int:
    """Runs the command; 1 when `--check` found a stale file."""
    wanted = generate.files(args.kind, _site(args))
    if args.kind == "all":
        wanted = kubernetes.kept(wanted, args.out)
    if not args.check:
        changed = generate.write(wanted, args.out)
        print(f"{len(wanted)} files, {len(changed)} changed" + "".join(f"\n  {path}" for path in changed))
        return 0
    stale = generate.stale(wanted, args.out)
    if stale:
        print(f"{len(stale)} of {len(wanted)} generated files are out of date:", *stale, sep="\n  ", file=sys.stderr)
        print(f"Update them with: jaxobs generate {args.kind}", file=sys.stderr)
        return 1
    print(f"{len(wanted)} generated files are up to date")
    return 0


def _site(args: argparse.Namespace) -> Site:
    """Returns the site file, with what the flags say instead."""
    found = Site() if args.site is None else site.read(args.site)
    given: dict[str, Any] = {
        name: getattr(args, name) for name in ("job", "runbook_url", "grafana_url") if getattr(args, name) is not None
    }
    if args.slos is not None:
        given["slos"] = openslo.read(args.slos)
    if args.function:
        given["functions"] = tuple(args.function)
    if args.matcher:
        pairs = [each.partition("=") for each in args.matcher]
        wrong = next((each for each, (_, equals, _) in zip(args.matcher, pairs, strict=True) if not equals), None)
        if wrong is not None:
            raise SettingError(f"--matcher {wrong}: write it as LABEL=VALUE.")
        given["matchers"] = {**found.matchers, **{name: value for name, _, value in pairs}}
    chosen = dataclasses.replace(found, **given)
    alerting.check(chosen)
    return chosen
