"""What is left of the machines of a cluster, as our own tasks are given their places."""

from __future__ import annotations

from collections.abc import Iterable

from nearwise.cluster._ray import Node


class Room:
    """Counts down CPUs and memory, machine by machine."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._left = {node.id: node for node in nodes}

    def take_at(self, node_id: str, cpus: float, memory: float) -> None:
        """Counts a task at a machine; one that is gone has nothing to count."""
        if node := self._left.get(node_id):
            self._left[node_id] = node._replace(cpus=node.cpus - cpus, memory=node.memory - memory)

    def take(self, cpus: float, memory: float) -> str | None:
        """The id of the machine with the most CPUs left among those that have room, whose room is taken then."""
        fitting = (node for node in self._left.values() if node.cpus >= cpus and node.memory >= memory)
        node = max(fitting, key=lambda node: node.cpus, default=None)
        if node is None:
            return None
        self.take_at(node.id, cpus, memory)
        return node.id
