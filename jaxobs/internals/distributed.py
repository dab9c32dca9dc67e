"""The job's key-value store: texts that processes of one `jax.distributed` job leave for each other.

It belongs to JAX's coordination service, which every such job has; nothing has to be set up. Each call goes over the
network and may wait: call from a thread that nobody has to wait for.
"""

import sys
from typing import Any


def can_talk() -> bool:
    """Returns whether this JAX's client has the methods that are used here."""
    from jax._src import lib

    for name in ("_jax", "xla_extension"):
        client = getattr(getattr(lib, name, None), "DistributedRuntimeClient", None)
        if client is not None:
            return hasattr(client, "key_value_set") and hasattr(client, "key_value_dir_get")
    return False


def connected() -> bool:
    """Returns whether this process is part of a job with a coordination service, and has not left it."""
    return _client() is not None


def coordinator() -> str | None:
    """`host:port` of the job's coordination service; None where there is none."""
    distributed = sys.modules.get("jax._src.distributed")
    address = getattr(getattr(distributed, "global_state", None), "coordinator_address", None)
    return address if isinstance(address, str) else None


def publish(key: str, text: str) -> None:
    """Leaves a text, instead of an earlier one; raises `RuntimeError` if the service does not answer."""
    client = _client()
    if client is None:
        raise RuntimeError("the process has left its job")
    client.key_value_set(key, text, allow_overwrite=True)


def read(folder: str) -> dict[str, str]:
    """Returns all texts by key whose keys begin with `folder` and a slash; raises as `publish`."""
    client = _client()
    if client is None:
        raise RuntimeError("the process has left its job")
    return {str(key): str(text) for key, text in client.key_value_dir_get(folder)}


def _client() -> Any:
    distributed = sys.modules.get("jax._src.distributed")
    return getattr(getattr(distributed, "global_state", None), "client", None)
