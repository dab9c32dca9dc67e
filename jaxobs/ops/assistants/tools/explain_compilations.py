"""Why something compiled."""

from collections.abc import Callable

from jaxobs.facts.events import plain, timestamp
from jaxobs.ops.assistants import processes
from jaxobs.ops.assistants.answers import Answer, Name, Sources, Start, count, no_data, page


def make(sources: Sources) -> Callable[..., Answer]:
    def explain_compilations(
        process: Name = "", function: Name = "", index: int = 0, start: Start = 0, first_calls: bool = False
    ) -> Answer:
        """Why functions compiled: cause, reason with the argument that changed, call site, seconds. The latest first.

        `function` is a name or its end (`train_step`); empty for all. First compilations are left out unless
        `first_calls` is set, because they are ordinary.
        """
        found = processes.one(sources, process, index)
        chosen = [
            each
            for each in reversed(found.compilations)
            if (each.function == function or each.function.endswith(f".{function}") or not function)
            and (first_calls or each.cause != "first_call")
        ]
        if not chosen:
            return no_data(
                f"None of {len(found.compilations)} known compilations fits. Programs: "
                f"{len({each.function for each in found.compilations})}. Set `first_calls` to see first compilations."
            )
        rows = [
            {
                "time": timestamp(each.time), "function": each.function, "cause": each.cause, "reason": each.reason,
                "call_site": each.call_site, "seconds": round(sum(each.phases.values()), 4), "cache": each.cache,
                "changes": plain(each.changes),
            }
            for each in chosen
        ]  # fmt: skip
        lost = f" {found.dropped} older ones are no longer known." if found.dropped else ""
        return page(f"{count(len(rows), 'compilation')}, the latest first.{lost}", rows, start)

    return explain_compilations
