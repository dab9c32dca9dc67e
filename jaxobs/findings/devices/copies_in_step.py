"""`copies_in_step`: in the steps of a loop, devices move data around for much of their time instead of computing."""

from jaxobs.findings.cases import Scene
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS as LEAST_SECONDS
from jaxobs.findings.devices.support.profiled import in_work

NAME = "copies_in_step"
NEEDS = Scene

LEAST_SHARE = 0.3
_MOVES = ("copy", "transfer")

find = in_work(
    LEAST_SHARE,
    lambda each: sum(each.seconds.get(name, 0.0) for name in _MOVES),
    lambda each: each.category in _MOVES,
    "copying and moving arrays",
    "Look for transposes and reshapes that change the layout, concatenations that could be written in place, arguments "
    "that could be donated (`donate_argnums`), and arrays that are kept on the host.",
)
