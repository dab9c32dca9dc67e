"""Runs the corpus under the JAX of this interpreter and prints a JSON report.

    python -m benchmarks.corpus.here [--devices 8] [--only TEXT] [--every N --from K] [--verbose]

Needs JAX, prometheus-client and jaxobs on the path. Cases for Flax and Equinox are left out where these are missing,
and the report says so.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import platform
import sys

from tools.quick_xla import quick


def main() -> int:
    """Runs the cases that this machine can run; exit code 1 when one fails."""
    parser = argparse.ArgumentParser(description="The corpus of causes.")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="run only each Nth program")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of these programs")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = quick(f"--xla_force_host_platform_device_count={args.devices}")

    import jax

    import jaxobs

    jaxobs.install()
    from benchmarks.corpus import judging, truth

    truth.count_truth()
    from benchmarks.corpus.programs import eager, library, mesh, nearest, plain, quiet  # noqa: F401

    jax.devices()
    verdicts, left_out = [], []
    for case in judging.cases[args.first :: args.every]:
        if args.only not in case.id:
            continue
        if case.devices > args.devices or not case.needs():
            left_out.append(case.id)
            continue
        verdict = judging.run(case)
        verdicts.append(verdict)
        if args.verbose:
            print(f"{'FAIL' if verdict.problems else 'ok  '} {verdict.id} [{verdict.explainer}]", file=sys.stderr)
            for line in verdict.problems + (verdict.reasons if args.verbose else []):
                print("      ", line, file=sys.stderr)
    report = {
        "jax": jax.__version__,
        "python": platform.python_version(),
        "devices": args.devices,
        "libraries": [name for name in ("flax", "equinox") if importlib.util.find_spec(name)],
        "left_out": left_out,
        "errors": dict(jaxobs.snapshot().observer.internal_errors),
        "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts],
    }
    print(json.dumps(report, indent=1))
    return 1 if any(verdict.problems for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
