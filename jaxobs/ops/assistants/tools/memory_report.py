"""Reports the memory of devices."""

from collections.abc import Callable

from jaxobs.facts.events import plain
from jaxobs.ops.assistants import processes
from jaxobs.ops.assistants.answers import Answer, Name, Sources, no_data, ok


def make(sources: Sources) -> Callable[..., Answer]:
    def memory_report(process: Name = "", index: int = 0) -> Answer:
        """Shows where the device memory is, in bytes: by device, by group of live arrays with the line that made them,
        by program; the headroom, and the last time that memory ran out."""
        now = processes.one(sources, process, index).snapshot
        programs = sorted(
            ((each.name, each.program.memory) for each in now.functions if each.program and each.program.memory),
            key=lambda each: -sum(each[1].values()),
        )
        if not (now.array_groups or programs or any(each.memory for each in now.devices)):
            return no_data("The process has used no device yet, or its memory was not sampled.")
        return ok(
            "Bytes. `in_use_bytes` is absent on devices whose allocator reports none, as on a CPU.",
            {
                "devices": [
                    {"device": each.device, "kind": each.device_kind}
                    | ({} if each.memory is None else _memory(plain(each.memory)))
                    | ({} if each.account is None else {"account": plain(each.account)})
                    for each in now.devices
                ],
                "headroom": plain(now.headroom),
                "arrays": plain(now.array_groups[:20]),
                "programs": {name: dict(memory) for name, memory in programs[:20]},
                "executables": now.executables,
                "last_out_of_memory": plain(now.last_out_of_memory),
            },
        )

    return memory_report


def _memory(found: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in found.items() if "bytes" in name and value is not None}
