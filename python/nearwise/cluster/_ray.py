"""Ray, if it is there, and what is asked of it in one place."""

from __future__ import annotations

from typing import NamedTuple

try:
    import ray
except ImportError as error:
    raise ImportError("nearwise.cluster needs Ray: pip install nearwise[ray]") from error

from nearwise._error import Error

__all__ = ["Node", "nodes", "ray"]


class Node(NamedTuple):
    """A machine of the cluster, or what Ray takes for one."""

    id: str
    cpus: float
    memory: float  # bytes that tasks may ask for


def nodes() -> list[Node]:
    """Those alive that can work, in an order that does not change. The head of a cluster often has no CPUs."""
    if not ray.is_initialized():
        # Never started here: left alone, Ray would listen at the machine's outer address.
        raise Error('cluster: not connected to a cluster; call ray.init(address="auto") first', "device")
    alive = [
        Node(node["NodeID"], node["Resources"].get("CPU", 0), node["Resources"].get("memory", 0))
        for node in ray.nodes()
        if node["Alive"]
    ]
    return sorted(node for node in alive if node.cpus > 0)
