"""Compiles ahead what a program will need: from signatures given by hand, or recorded in a production run's event log.

`records` reads recorded signatures from a log, `rebuilding` makes arguments of them, `finding` finds the functions,
`compiling` lowers on the caller's thread and compiles in parallel.
"""

from jaxobs.compile_cache.warming.compiling import Signature as Signature
from jaxobs.compile_cache.warming.compiling import Warmed as Warmed
from jaxobs.compile_cache.warming.compiling import warmup as warmup
