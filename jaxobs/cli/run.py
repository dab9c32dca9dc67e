"""`jaxobs run`: a script under observation that notices nothing of it."""

import argparse
import atexit
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from jaxobs.base import config
from jaxobs.base.config import Settings
from jaxobs.base.errors import JaxobsError, PortTakenError
from jaxobs.base.guard import guarded
from jaxobs.cli import add_settings, given_settings
from jaxobs.session import script

HELP = "run a script or module under observation, unchanged"

_EXAMPLES = """\
examples:
  jaxobs run train.py --steps 1000
  jaxobs run -m mypackage.train --steps 1000
  generate_program | jaxobs run - --steps 1000
  jaxobs run --port 0 --event-log events.jsonl --metrics-file metrics.prom train.py
  jaxobs run --instrument train:train_step --instrument model:Model.predict train.py

Put options of jaxobs before SCRIPT, -m MODULE or -; everything after belongs to the script. With -, the script is read
from standard input, as with `python -`.
The exit code is the script's. JAXOBS_DISABLED=1 runs the script and nothing else."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the options; what follows them is taken apart by `parse`."""
    parser.usage = "\n       ".join(f"jaxobs run [options] {what} [ARGS]" for what in ("SCRIPT", "-m MODULE", "-"))
    parser.epilog = _EXAMPLES
    parser.add_argument("-m", metavar="MODULE", dest="module", help="run this module, as `python -m` does")
    parser.set_defaults(script=None, rest=[])
    add_settings(parser, config.names())


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the options up to SCRIPT or `-m MODULE`, and leaves alone what comes behind."""
    end, rest = _end_of_options(parser, arguments)
    args = parser.parse_args(list(arguments[:end]))
    args.rest = list(arguments[rest:])
    if args.module is None:
        if not args.rest:
            parser.error("name a SCRIPT, -m MODULE, or - for standard input")
        args.script = args.rest.pop(0)
    return args


def _end_of_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[int, int]:
    """Returns the positions where our options end and the script's part begins."""
    flags = parser._option_string_actions
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return position, position + 1
        if word == "-m":
            return position + 2, position + 2
        if word.startswith("-m"):
            return position + 1, position + 1
        if not word.startswith("-") or word == "-":
            return position, position
        action = flags.get(word)
        position += 2 if action is not None and action.nargs != 0 else 1
    return position, position


def run(args: argparse.Namespace) -> int | Callable[[], int]:
    """Starts the observation and returns what runs the script: nothing may come between it and the interpreter.

    Raises:
      SettingError: an option, or a variable `JAXOBS_...`, has a value that it cannot have.
    """
    if config.disabled():
        return partial(_run_script, args, None)
    given = given_settings(args)
    settings = config.resolve(given)
    usage, compile_main = None, None
    with guarded("run"):
        try:
            compile_main = _observe(args, settings, given)
        except JaxobsError as error:
            usage = error
    if usage is not None:
        raise usage
    return partial(_run_observed, args, compile_main)


def _observe(args: argparse.Namespace, settings: Settings, given: dict[str, Any]) -> script.Compile | None:
    from jaxobs.instruments import instrumentation
    from jaxobs.session import children, lifecycle
    from jaxobs.state import store

    compile_main = instrumentation.main_compiler(settings.instrument, _main_names(args))
    store.current().program = _program(args)
    lifecycle.install(**given)
    children.observe({**given, "instrument": settings.instrument}, _program(args), _main_names(args))
    if settings.port:
        _serve(settings)
    return compile_main


def _program(args: argparse.Namespace) -> str:
    if args.module is not None:
        return str(args.module)
    return script.STANDARD_INPUT if args.script == "-" else os.path.basename(os.path.abspath(args.script))


def _main_names(args: argparse.Namespace) -> list[str]:
    """Returns the names by which other modules may import the main script."""
    if args.module is not None:
        return [args.module, f"{args.module}.__main__"]
    return [] if args.script == "-" else [os.path.splitext(os.path.basename(args.script))[0]]


def _serve(settings: Settings) -> None:
    from jaxobs.session import lifecycle

    try:
        handle = lifecycle.serve(port=settings.port, addr=settings.addr)
    except PortTakenError as error:
        print(f"jaxobs: {error} The script runs without the endpoint.", file=sys.stderr)
    else:
        if handle is not None:
            lifecycle.tell(handle)


# ------------------------------------------------------------------------------------------------- the script


def _run_observed(args: argparse.Namespace, compile_main: script.Compile | None) -> int:
    end = _End()
    # Registered before the script can register anything: called after all exit handlers of the script.
    atexit.register(end.tell)
    try:
        return _run_script(args, compile_main)
    except BaseException as error:
        end.note(error)
        _uncaught(error)
        raise


def _uncaught(error: BaseException) -> None:
    """Reports the exception at once: the interpreter may wait for threads before it comes to the exit handlers."""
    from jaxobs.recorder import flight_recorder
    from jaxobs.state import store

    with guarded("run.uncaught"):
        flight_recorder.of(store.current()).uncaught(error, ending=True)


def _run_script(args: argparse.Namespace, compile_main: script.Compile | None) -> int:
    if args.module is not None:
        script.run_module(args.module, args.rest, compile_main)
    elif args.script == "-":
        script.run_standard_input(args.rest, compile_main)
    else:
        script.run_path(args.script, args.rest, compile_main)
    return 0


class _End:
    """End of the script, reported when the interpreter has run the script's exit handlers."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._reason = "normal"
        self._detail: str | None = None
        self._code = 0

    def note(self, error: BaseException) -> None:
        """Keeps what the last state will say of this."""
        from jaxobs.recorder import flight_recorder

        if isinstance(error, SystemExit):
            self._code = flight_recorder.exit_code(error)
        elif isinstance(error, KeyboardInterrupt):
            self._reason, self._detail, self._code = "signal", "SIGINT", 130
        else:
            self._reason, self._detail, self._code = "exception", type(error).__name__, 1

    def tell(self) -> None:
        """Writes the last state and says what could not be instrumented; silent in a forked child."""
        from jaxobs.instruments import instrumentation
        from jaxobs.session import lifecycle

        with guarded("run.end"):
            if os.getpid() != self._process:
                return
            lifecycle.finish(self._reason, self._detail, self._code)
        with guarded("run.unmet"):
            for sentence in instrumentation.unmet():
                print(f"jaxobs: {sentence}", file=sys.stderr)
