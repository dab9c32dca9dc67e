"""An out-of-memory report as a text for a person: what to do first, then what it is drawn from."""

from collections.abc import Iterator

from jaxobs.base.symptoms import symptom_url
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.events import timestamp
from jaxobs.recorder.oom_case import groups
from jaxobs.recorder.oom_texts import human
from jaxobs.recorder.report_text import accelerator_line, device_line, fact, section, wrapped

_STAGES = {
    "start": "while JAX acquired the device",
    "compile": "while it was compiled",
    "load": "while its program was loaded onto the device",
    "run": "while it ran",
    "allocate": "while an array was created",
    "unknown": "",
}


def text(event: OutOfMemory) -> str:
    """The report, ending in a newline."""
    return "\n".join(_lines(event)) + "\n"


def _lines(event: OutOfMemory) -> Iterator[str]:
    yield f"Out of memory: {event.function} {_STAGES[event.stage]}".rstrip()
    yield f"{timestamp(event.time)}, process {event.process_index}, pid {event.pid}"
    yield ""
    yield from fact("error", f"{event.error}: {event.message.splitlines()[0] if event.message else ''}")
    for name, size in _sizes(event):
        yield from fact(name, human(size) if size < 1024 else f"{human(size)} ({size:,} bytes)")
    yield from fact("device", event.device)
    yield from fact("call site", event.call_site)
    yield from fact("called with", event.signature)
    yield ""
    yield "WHAT TO DO"
    for number, cause in enumerate(event.causes, 1):
        yield from wrapped(f"{cause.summary} [{cause.cause}]", f"{number}. ")
        yield from wrapped(cause.advice, "   ")
        for sentence in cause.evidence:
            yield from wrapped(sentence, "   - ")
    yield from wrapped(f"More: {symptom_url('out_of_memory')}", "")
    yield from section("DEVICES", [device_line(each) for each in event.devices])
    yield from section("DEVICES BY THEIR DRIVER", [accelerator_line(each) for each in event.accelerators])
    host = ", ".join(f"{name} {human(size)}" for name, size in event.host.items())
    yield from section("HOST", [host] if host else [])
    yield from section("LARGEST GROUPS OF LIVE ARRAYS", list(_arrays(event)))
    yield from section("WHAT THE PROGRAM NEEDS", list(_program(event)))
    yield from section("LARGEST BUFFERS OF THE PROGRAM", list(_buffers(event)))
    yield from section("COMPILATIONS BEFORE, LATEST FIRST", list(event.compilations))
    yield from section("MEMORY BEFORE, LATEST FIRST", list(event.samples))
    yield from section("FLAGS", [f"{name}={value}" for name, value in event.flags.items()])
    yield from section("VERSIONS", [", ".join(f"{name} {value}" for name, value in event.versions.items())])
    if len(event.message.splitlines()) > 1:
        yield from section("THE ERROR'S TEXT", event.message.splitlines())


def _sizes(event: OutOfMemory) -> Iterator[tuple[str, int]]:
    for name in ("wanted", "used", "free", "limit", "exceeded", "total"):
        if (size := getattr(event, f"{name}_bytes")) is not None:
            yield name, size


def _arrays(event: OutOfMemory) -> Iterator[str]:
    for group in groups(event):
        where = f"{group.devices} devices, replicated" if group.replicated else f"{group.devices} devices"
        place = group.sharding if group.devices < 2 else f"{group.sharding}, {where}"
        place += f", created at {', '.join(group.call_sites[:2])}" if group.call_sites else ""
        yield f"{human(group.bytes):>10} {group.share:>5.0%} {group.count:>7,} x {group.shape}  {place}"


def _program(event: OutOfMemory) -> Iterator[str]:
    for source, sizes in (("according to the compiler", event.program), ("according to the error", event.sections)):
        if sizes:
            yield f"{source}: {', '.join(f'{name} {human(size)}' for name, size in sizes.items())}"
    if event.program_flops is not None:
        yield f"{event.program_flops:,.0f} floating-point operations"


def _buffers(event: OutOfMemory) -> Iterator[str]:
    for buffer in event.buffers:
        padded = "" if not buffer.padding else f", of which padding {human(buffer.padding)}"
        yield f"{human(buffer.size):>10}  {buffer.shape or '?'}  {buffer.operator or buffer.allocation or ''}{padded}"
