"""Checks whether this machine is fit for a job."""

from collections.abc import Callable

from jaxobs.facts.events import plain
from jaxobs.ops import doctor
from jaxobs.ops.assistants.answers import Answer, Sources, Start, no_data, page
from jaxobs.ops.doctor.machine import Machine


def make(sources: Sources) -> Callable[..., Answer]:
    def run_doctor(everything: bool = False, start: Start = 0) -> Answer:
        """Checks the machine on which this server runs: versions, flags, devices, the persistent cache, limits. No
        accelerator is touched. Only what is wrong, unless `everything` is set. Each finding has the command that fixes
        it; propose it, do not run it unasked."""
        found = doctor.worst_first(doctor.examine(Machine()))
        wrong = [each for each in found if each.severity != "ok"]
        chosen = found if everything else wrong
        if not chosen:
            return no_data(f"All {len(found)} checks passed.")
        return page(f"{len(found)} checks, {len(wrong)} with a finding, the worst first.", plain(chosen), start)

    return run_doctor
