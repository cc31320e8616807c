"""Free resources of the machines, while our own tasks are placed."""

from __future__ import annotations

from collections.abc import Iterable

from nearwise.cluster._ray import Node


class Room:
    """Free CPUs and memory per machine."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._left = {node.id: node for node in nodes}

    def take_at(self, node_id: str, cpus: float, memory: float) -> None:
        """Reserves resources on a machine, if it still exists."""
        if node := self._left.get(node_id):
            self._left[node_id] = node._replace(cpus=node.cpus - cpus, memory=node.memory - memory)

    def take(self, cpus: float, memory: float) -> str | None:
        """Reserves resources on the machine with the most free CPUs that has enough, and returns its id."""
        fitting = (node for node in self._left.values() if node.cpus >= cpus and node.memory >= memory)
        node = max(fitting, key=lambda node: node.cpus, default=None)
        if node is None:
            return None
        self.take_at(node.id, cpus, memory)
        return node.id
