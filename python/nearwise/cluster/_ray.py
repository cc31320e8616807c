"""The only access to Ray."""

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
    """A node of the cluster."""

    id: str
    cpus: float
    memory: float  # bytes that tasks may reserve


def nodes() -> list[Node]:
    """The live nodes with CPUs, in a fixed order. The head node often has none."""
    if not ray.is_initialized():
        # Not started here: by default Ray would listen on the machine's public address.
        raise Error('cluster: not connected to a cluster; call ray.init(address="auto") first', "device")
    alive = [
        Node(node["NodeID"], node["Resources"].get("CPU", 0), node["Resources"].get("memory", 0))
        for node in ray.nodes()
        if node["Alive"]
    ]
    return sorted(node for node in alive if node.cpus > 0)


def on(node_id: str) -> Any:
    """For `options(scheduling_strategy=...)`: that node, or another if it is dead or busy.

    The node itself decides, with its current resources. Ray's default policy moves waiting tasks between nodes, which
    learn of freed resources 0.1 s late.
    """
    return NodeAffinitySchedulingStrategy(node_id, soft=True, _spill_on_unavailable=True)
