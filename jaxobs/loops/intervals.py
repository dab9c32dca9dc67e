"""Intervals between two looks of the clock: the more looks there were, the less another one tells."""

import random

LOOK_SECONDS = 0.1
EARLY_LOOKS, EARLY_LOOK_SECONDS = 200, 0.03
"""Looks with which the clock begins, and seconds between them: of a short program, fewer would tell too little."""
STEADY_LOOKS, STEADY_LOOK_SECONDS = 600, 0.3
"""After so many looks, within a minute, much is known. At this interval, looks at one thread cost 0.1 % of a core."""
SERVING_LOOK_SECONDS = 1.0
"""As steady looks, at the many threads of a service."""
QUIET_LOOK_SECONDS = 0.5


def pause(looks: int, *, quiet: bool, serves: bool) -> float:
    """Returns the seconds until the next look, at random: even intervals might always meet the same part of a turn.

    Args:
      looks: looks so far.
      quiet: whether the program has called nothing for long.
      serves: whether each look goes through the threads of a service.
    """
    steady = looks >= STEADY_LOOKS
    if quiet:
        seconds = QUIET_LOOK_SECONDS
    elif looks < EARLY_LOOKS:
        seconds = EARLY_LOOK_SECONDS
    elif serves:
        seconds = SERVING_LOOK_SECONDS if steady else STEADY_LOOK_SECONDS
    else:
        seconds = STEADY_LOOK_SECONDS if steady else LOOK_SECONDS
    return seconds * random.uniform(0.5, 1.5)
