"""Memory and CPUs of the host, as far as this process may use them."""

import re
from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, listed, ok
from jaxobs.views.terminal.text import size

LEAST_FREE = 2 * 2**30
FEW_CPUS = 2.0
"""Below, XLA's compiler, the loaders and the thread that feeds the device wait for each other."""


def check(machine: Machine) -> Iterator[Finding]:
    """By /proc/meminfo, the control group, and the CPUs that this process may use."""
    yield from _memory(machine)
    yield from _processors(machine)
    yield from _nodes(machine)


def _memory(machine: Machine) -> Iterator[Finding]:
    fields = dict(re.findall(r"(\w+):\s+(\d+) kB", machine.read("/proc/meminfo") or ""))
    known = {name: int(value) * 1024 for name, value in fields.items()}
    free = known.get("MemAvailable")
    if free is None:
        yield ok("Free memory is not known", "there is no /proc/meminfo")
        return
    limit, used = _group_memory(machine)
    text = f"{size(free)} available of {size(known.get('MemTotal'))}"
    if limit is not None and limit < known.get("MemTotal", limit + 1):
        free = min(free, limit - used)
        text += f"; the control group allows {size(limit)}, and {size(used)} are used"
    if free < LEAST_FREE:
        yield Finding(
            severity="warning", title="Little host memory is free", entity="memory", evidence=text,
            why="Compiling a large program takes several GiB: the kernel kills the job without a message.",
            fix="ps aux --sort=-rss | head   # or raise the container's memory limit",
        )  # fmt: skip
    else:
        yield ok("Host memory is free", text, "memory")
    swapped = known.get("SwapTotal", 0) - known.get("SwapFree", 0)
    if swapped > known.get("MemTotal", 0) // 4:
        yield Finding(
            severity="warning", title="Much of the memory is swapped out", entity="swap",
            evidence=f"{size(swapped)} of swap are used", why="Steps wait for a disk.", fix="vmstat 1   # si, so",
        )  # fmt: skip


def _group_memory(machine: Machine) -> tuple[int | None, int]:
    """Limit and use of the control group (version 2, else 1); None for no limit."""
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        text, taken = machine.read(limit), machine.read(used)
        if text is not None and text.isdigit():
            return int(text), int(taken) if taken is not None and taken.isdigit() else 0
    return None, 0


def _processors(machine: Machine) -> Iterator[Finding]:
    quota = _quota(machine)
    usable = machine.cpus if quota is None else min(quota, float(machine.cpus))
    text = f"{machine.cpus} CPUs" + ("" if quota is None else f", a quota of {quota:g}")
    if usable < FEW_CPUS:
        yield Finding(
            severity="warning", title="Few CPUs may be used", entity="cpu", evidence=text,
            why="Compiling, feeding and dispatching share them: the accelerator waits.",
            fix="Raise the container's CPU limit, or `taskset -p $$` to see the affinity",
        )  # fmt: skip
    elif quota is not None and quota < machine.cpus / 2:
        yield Finding(
            severity="info", title="The CPU quota is far below the CPUs that are seen", entity="cpu", evidence=text,
            why="XLA makes a thread for each CPU that it sees, and the kernel halts them all when the quota is spent.",
            fix="Set the CPU limit to whole CPUs and bind them (a static CPU manager), or leave it out",
        )  # fmt: skip
    else:
        yield ok("Enough CPUs", text, "cpu")


def _quota(machine: Machine) -> float | None:
    """CPUs that the control group allows; None for no limit."""
    text = (machine.read("/sys/fs/cgroup/cpu.max") or "").split()
    if len(text) == 2 and text[0].isdigit() and text[1].isdigit():
        return int(text[0]) / int(text[1])
    quota = machine.read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") or ""
    period = machine.read("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or ""
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _nodes(machine: Machine) -> Iterator[Finding]:
    """Yields whether this process may run on the node of its devices."""
    nodes = machine.names("/sys/devices/system/node", r"node\d+")
    allowed = _cpus(_status(machine, "Cpus_allowed_list"))
    if len(nodes) < 2 or not allowed:
        return
    mine = {each.rpartition("node")[2] for each in nodes if allowed & _cpus(machine.read(f"{each}/cpulist") or "")}
    near = {
        text
        for each in machine.names("/sys/bus/pci/devices", r".*")
        if machine.read(f"{each}/vendor") in ("0x10de", "0x1ae0")
        and (machine.read(f"{each}/class") or "").startswith(("0x03", "0x12", "0x08"))
        and (text := machine.read(f"{each}/numa_node")) not in (None, "-1")
    }
    if near and not near & mine:
        yield Finding(
            severity="warning", title="This process may not run next to its devices", entity="numa",
            evidence=f"CPUs of node {listed(sorted(mine))}; devices at node {listed(sorted(map(str, near)))}",
            why="Every transfer crosses the link between the sockets.",
            fix=f"numactl --cpunodebind={min(map(str, near))} --preferred={min(map(str, near))} COMMAND",
        )  # fmt: skip


def _status(machine: Machine, field: str) -> str:
    matched = re.search(rf"{field}:\s*(\S+)", machine.read("/proc/self/status") or "")
    return matched[1] if matched else ""


def _cpus(text: str) -> set[int]:
    """Returns the numbers in a list such as `0-3,8`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found
