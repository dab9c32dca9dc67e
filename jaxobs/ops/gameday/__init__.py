"""Game days: a fault in the demo's training run, for a team that rehearses alert, runbook and diagnosis.

`faults` has the faults. `rehearsal` is the program that it is put into, and `running`
starts that in a process of its own and judges what `jaxobs diagnose` says of it.
"""

from jaxobs.ops.gameday.fault_types import Fault as Fault
