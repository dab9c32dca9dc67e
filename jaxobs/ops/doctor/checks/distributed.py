"""The variables of a job of several processes: whether they agree, and whether process 0 can be reached."""

import ipaddress
import socket
from collections.abc import Iterator, Mapping

from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, Machine, ok

COORDINATOR, COUNT, INDEX = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
BIND = "JAX_COORDINATOR_BIND_ADDRESS"
WHAT = {COUNT: "how many processes there are", INDEX: "number of this one, from 0"}
CLUSTERS = ("SLURM_JOB_ID", "OMPI_MCA_orte_hnp_uri", "OMPI_COMM_WORLD_SIZE", "KUBERNETES_SERVICE_HOST", "TPU_WORKER_ID")
"""Set by schedulers of which JAX itself takes what is missing."""
LAUNCHERS = (("SLURM_NTASKS", "SLURM_PROCID"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"))
"""How many processes there are and which one this is, as launchers say."""
MEGASCALE = ("MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID")


def check(machine: Machine) -> Iterator[Finding]:
    """By the environment and the resolver; nothing connects."""
    environment = machine.environment
    given = {name: environment[name] for name in (COORDINATOR, COUNT, INDEX) if environment.get(name)}
    found = False
    for problem in (*_problems(machine, given), *_interfaces(machine), *_workers(environment)):
        found = True
        yield problem
    slices = [name for name in MEGASCALE if environment.get(name)]
    if slices and len(slices) < len(MEGASCALE):
        found = True
        missing = [name for name in MEGASCALE if name not in slices]
        yield Finding(
            severity="warning", title="The variables of a multislice job are incomplete", entity=missing[0],
            evidence=f"set: {', '.join(slices)}; missing: {', '.join(missing)}",
            why="Left over from another job, they make TPU initialization wait for slices that are not there.",
            fix=f"unset {' '.join(slices)}   # or set all of them",
        )  # fmt: skip
    if not found:
        said = ", ".join(f"{name}={value}" for name, value in given.items())
        yield ok("The settings of the job agree" if given else "No distributed settings", said or "none set")


def _interfaces(machine: Machine) -> Iterator[Finding]:
    """Yields network interfaces and adapters that are named and not here, by the rules of NCCL."""
    for variable in ("NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA"):
        given = machine.environment.get(variable, "").strip()
        names = [each.partition(":")[0] for each in given.lstrip("^=").split(",") if each]
        if given.startswith("^") or not names or not machine.path("/sys/class").exists():
            continue
        folder = "/sys/class/infiniband" if variable.endswith("HCA") else "/sys/class/net"
        here = [each.rpartition("/")[2] for each in machine.names(folder, r".*")]
        fits = str.__eq__ if given[0] == "=" else str.startswith
        fitting = {each for each in here if any(fits(each, name) for name in names)}
        if not fitting or (fitting == {"lo"} and machine.hosts > 1):
            yield Finding(
                severity="critical", entity=variable, title=f"{variable} names none that is here" if not fitting
                else f"{variable} is the loopback, but the job has several hosts",
                evidence=f"{variable}={given}; here: {', '.join(here) or 'none'}; {machine.hosts} hosts",
                why="The hosts cannot reach each other, or take a slower way.", fix=f"unset {variable}",
            )  # fmt: skip


def _workers(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yields a worker of a TPU pod that is not in the list of workers."""
    for name in ("TPU_WORKER_HOSTNAMES", "TPU_PROCESS_ADDRESSES"):
        workers, index = environment.get(name, "").split(","), environment.get("TPU_WORKER_ID", "")
        if workers != [""] and index and not (index.isdecimal() and int(index) < len(workers)):
            yield Finding(
                severity="critical", title=f"There is no worker {index} in {name}", entity="TPU_WORKER_ID",
                evidence=f"TPU_WORKER_ID={index}, {name}={','.join(workers)}",
                why="TPU initialization fails, or waits for a worker that does not come.",
                fix=f"Give the workers the numbers 0 to {len(workers) - 1}",
            )  # fmt: skip


def _problems(machine: Machine, given: dict[str, str]) -> Iterator[Finding]:
    numbers: dict[str, int] = {}
    for name in (COUNT, INDEX):
        if name in given:
            try:
                numbers[name] = int(given[name])
            except ValueError:
                yield Finding(
                    severity="critical", title=f"{name} is not a number", entity=name, evidence=f"{name}={given[name]}",
                    why="jax.distributed.initialize() fails.",
                    fix=f"export {name}=<{WHAT[name]}>",
                )  # fmt: skip
                return
    count, index = numbers.get(COUNT), numbers.get(INDEX)
    if count is not None and count < 1:
        yield Finding(
            severity="critical", title=f"A job cannot have {count} processes", entity=COUNT,
            evidence=f"{COUNT}={count}", why="jax.distributed.initialize() fails.",
            fix=f"export {COUNT}=<how many processes there are>, or unset {COUNT}",
        )  # fmt: skip
        return
    if count is not None and index is not None and not 0 <= index < count:
        yield Finding(
            severity="critical", title=f"There is no process {index} in a job of {count}", entity=INDEX,
            evidence=f"{INDEX}={index}, {COUNT}={count}", why="The others wait for it until their time is up.",
            fix=f"Give the processes the numbers 0 to {count - 1}",
        )  # fmt: skip
    if COUNT in given and (count or 0) > 1 and COORDINATOR not in given:
        yield Finding(
            severity="warning", title="A job of several processes has no coordinator", entity=COORDINATOR,
            evidence=f"{COUNT}={count}; {COORDINATOR} is not set",
            why="Unless the program or the cluster names it, jax.distributed.initialize() fails.",
            fix=f"export {COORDINATOR}=<host of process 0>:1234",
        )  # fmt: skip
    yield from _disagreeing(machine, numbers)
    if COORDINATOR in given:
        found = list(_coordinator(machine, given[COORDINATOR], count, index))
        yield from found or _incomplete(machine, given, count)
    elif INDEX in given and count is None:
        yield from _incomplete(machine, given, count)


def _incomplete(machine: Machine, given: dict[str, str], count: int | None) -> Iterator[Finding]:
    """Yields what the program reads from the environment, if it reads the others there."""
    if count == 1 or not given or any(machine.environment.get(name) for name in CLUSTERS):
        return
    missing = [name for name in (COUNT, INDEX) if name not in given]
    if not missing:
        return
    yield Finding(
        # With an address alone, programs bring the numbers themselves.
        severity="warning" if len(missing) == 1 else "info", title=f"{' and '.join(missing)} " + (
            "is not set" if len(missing) == 1 else "are not set"
        ), entity=missing[0], evidence=", ".join(f"{name}={value}" for name, value in given.items()),
        why="Unless the program names it, jax.distributed.initialize() fails: no scheduler that JAX knows is here.",
        fix="; ".join(f"export {name}=<{WHAT[name]}>" for name in missing),
    )  # fmt: skip


def _disagreeing(machine: Machine, numbers: dict[str, int]) -> Iterator[Finding]:
    """Yields what a launcher says of the same process."""
    for count, index in LAUNCHERS:
        launched = {COUNT: machine.environment.get(count, ""), INDEX: machine.environment.get(index, "")}
        if not all(each.isdecimal() for each in launched.values()) or launched[COUNT] == "1":
            continue
        for ours, theirs in ((COUNT, count), (INDEX, index)):
            if ours in numbers and numbers[ours] != int(launched[ours]):
                yield Finding(
                    severity="warning", title=f"{ours} and {theirs} disagree", entity=ours,
                    evidence=f"{ours}={numbers[ours]}, {theirs}={launched[ours]}",
                    why="Processes with one number, or a wrong count of them, wait for each other in vain.",
                    fix=f"export {ours}=${theirs}",
                )  # fmt: skip


def _coordinator(machine: Machine, address: str, count: int | None, index: int | None) -> Iterator[Finding]:
    host, _, port = address.rpartition(":")
    if "://" in address or "/" in address:
        bare = address.partition("://")[2] or address
        yield Finding(
            severity="critical", title="The coordinator's address is not `host:port`", entity=COORDINATOR,
            evidence=f"{COORDINATOR}={address}", why="jax.distributed.initialize() fails.",
            fix=shell.export(COORDINATOR, bare.partition("/")[0]),
        )  # fmt: skip
        return
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        lacks = not host or not port.isdecimal()
        bare = (address if lacks else host).rstrip(":")
        yield Finding(
            severity="critical", entity=COORDINATOR,
            title="The coordinator's address has no port" if lacks else f"There is no port {port}",
            evidence=f"{COORDINATOR}={address}", why="jax.distributed.initialize() fails.",
            fix=shell.export(COORDINATOR, f"{bare}:1234"),
        )  # fmt: skip
        return
    try:
        addresses = {str(each[4][0]) for each in socket.getaddrinfo(host.strip("[]"), int(port))}
    except OSError as error:
        yield Finding(
            severity="critical", title=f"The coordinator `{host}` has no address", entity=COORDINATOR,
            evidence=f"{COORDINATOR}={address}: {error}", why="All processes wait for it, and give up after 5 minutes.",
            fix=f"getent hosts {shell.word(host)}",
        )  # fmt: skip
        return
    yield from _proxy(machine, host.strip("[]"), addresses)
    if all(map(_is_loopback, addresses)) and machine.hosts > 1:
        yield Finding(
            severity="critical", title="The coordinator is this host's loopback, but the job has several hosts",
            entity=COORDINATOR, why="Each host waits for a process 0 of its own.",
            evidence=f"{COORDINATOR}={address} ({', '.join(sorted(addresses))}), {machine.hosts} hosts",
            fix=f"export {COORDINATOR}=$(scontrol show hostnames | head -1):{port}"
            if "SLURM_JOB_ID" in machine.environment else f"export {COORDINATOR}=<host of process 0>:{port}",
        )  # fmt: skip
    if index == 0:
        yield from _service(machine, address, addresses, int(port))


def _service(machine: Machine, address: str, addresses: set[str], port: int) -> Iterator[Finding]:
    """Yields why process 0 cannot start the service here, or cannot be reached there."""
    bound = machine.environment.get(BIND) or f"[::]:{port}"
    at, _, bound_port = bound.rpartition(":")
    is_inside = at.strip("[]") in ("127.0.0.1", "::1", "localhost") and not any(map(_is_loopback, addresses))
    if bound_port != str(port) or is_inside:
        yield Finding(
            severity="critical", title="The coordinator does not listen at its address", entity=BIND,
            evidence=f"{BIND}={bound}, {COORDINATOR}={address}", why="The other processes wait for it in vain.",
            fix=f"unset {BIND}",
        )  # fmt: skip
    elif any(bind_error(each, 0) is None for each in addresses) and (error := bind_error("", port)):
        yield Finding(
            severity="critical", title=f"Port {port} of the coordinator is taken", entity=COORDINATOR,
            evidence=f"{COORDINATOR}={address}: {error}", why="Process 0 cannot start its service.",
            fix=f"ss -ltnp 'sport = :{port}'",
        )  # fmt: skip


def bind_error(host: str, port: int) -> OSError | None:
    """Returns why nothing can listen there; None if something can. The port is given back at once."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        return error
    return None


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _proxy(machine: Machine, host: str, addresses: set[str]) -> Iterator[Finding]:
    """Yields a proxy between the processes, by the variables that gRPC reads: the ones in lower case."""
    environment = machine.environment
    name = next((each for each in ("grpc_proxy", "https_proxy", "http_proxy") if environment.get(each)), None)
    excepted = environment.get("no_grpc_proxy") or environment.get("no_proxy") or ""
    if name is None or any(_is_excepted(each.strip(), host, addresses) for each in excepted.split(",")):
        return
    yield Finding(
        severity="warning", title=f"The processes connect through the proxy of {name}", entity=name,
        evidence=f"{name} is set, and no_proxy={excepted!r} does not except {host}",
        why="gRPC asks the proxy for the coordinator: the processes wait for each other in vain.",
        fix=shell.export("no_grpc_proxy", ",".join(filter(None, (excepted, host)))),
    )  # fmt: skip


def _is_excepted(entry: str, host: str, addresses: set[str]) -> bool:
    """Returns whether gRPC takes an entry of `no_proxy` for this host: the end of its name, or a network."""
    try:
        network = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return bool(entry) and host.lower().endswith(entry.lower())
    return any(ipaddress.ip_address(each.partition("%")[0]) in network for each in addresses)
