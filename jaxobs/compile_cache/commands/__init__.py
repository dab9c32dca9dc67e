"""The subcommands of `jaxobs cache`, one module each, found by name.

A module has `HELP` (one line), `configure(parser)` and `run(args)`, which returns the exit code: 0 fine, 1 findings,
2 usage. It may have `parse(parser, arguments)`, in place of argparse's own. What is no subcommand lives elsewhere.
"""

EACH_HAS = ("HELP", "configure", "run")
