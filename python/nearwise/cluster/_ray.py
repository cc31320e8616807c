"""Ray, if it is there, and what is asked of it in one place."""

from __future__ import annotations

from typing import Any, NamedTuple

try:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise ImportError("nearwise.cluster needs Ray: pip install nearwise[ray]") from error

from nearwise._error import Error

__all__ = ["Node", "nodes", "on", "ray"]


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


def on(node_id: str) -> Any:
    """For `options(scheduling_strategy=...)`: that machine, or where it is dead or others keep it busy, another.

    Ray asks the machine itself, which knows what it has left. Left to choose, it sends tasks that wait from one machine to
    the next and back, and what has just become free is known elsewhere a tenth of a second later.
    """
    return NodeAffinitySchedulingStrategy(node_id, soft=True, _spill_on_unavailable=True)
