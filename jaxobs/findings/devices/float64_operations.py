"""`float64_operations`: a program that is given narrower numbers computes in float64 for much of its time."""

from jaxobs.findings.cases import Scene
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS as LEAST_SECONDS
from jaxobs.findings.devices.support.profiled import in_work

NAME = "float64_operations"
NEEDS = Scene

LEAST_SHARE = 0.25

find = in_work(
    LEAST_SHARE,
    lambda each: each.widened_seconds,
    lambda each: each.widened,
    "in float64, and most of what the program is given is narrower",
    "Look for what brings float64 in at that line: a NumPy array or scalar without a dtype, the first value of a "
    "`lax.scan`, `jnp.zeros` or `jnp.arange` while `jax_enable_x64` is on. Give it the dtype of the rest.",
)
