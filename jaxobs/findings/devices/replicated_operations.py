"""`replicated_operations`: all devices of a program compute the same products, instead of a part each."""

from jaxobs.facts.profiles import PRODUCTS
from jaxobs.findings.cases import Scene
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS as LEAST_SECONDS
from jaxobs.findings.devices.support.profiled import in_work

NAME = "replicated_operations"
NEEDS = Scene

LEAST_SHARE = 0.25

find = in_work(
    LEAST_SHARE,
    lambda each: each.replicated_seconds,
    lambda each: each.replicated and each.category in PRODUCTS,
    "products that every device computes in full",
    "Shard one of the operands: put the batch on the devices with a sharding over the mesh, or constrain the arrays at "
    "that line with `jax.lax.with_sharding_constraint`.",
)
