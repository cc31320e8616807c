"""Several Ray nodes on this machine, which take each other for machines.

Only for processes that tools/isolated runs: Ray listens at the machine's address.
"""

import os
import secrets
import shutil
import signal
import tempfile
import time

if os.environ.get("NEARWISE_ISOLATED") != "1":
    raise RuntimeError("Ray is started in a network of its own only: tools/isolated COMMAND")
# Read when Ray is imported, and by every process that it starts.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_AUTH_MODE="token",
    # A node is taken for dead after 5 silent periods; by default that takes 15 s.
    RAY_health_check_initial_delay_ms="500",
    RAY_health_check_period_ms="500",
    OPENBLAS_NUM_THREADS="1",
)
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # set where a worker imports this

import ray  # noqa: E402  (after its environment)
from ray.cluster_utils import Cluster  # noqa: E402

STORE_BYTES = 128 << 20


class Nodes:
    """A head without CPUs, and nodes that can be killed."""

    def __init__(self, count, cpus):
        self._count, self._cpus = count, cpus
        # Short: the names of sockets lie in it. By the environment: Ray would also write to its usual folder
        # otherwise.
        self._folder = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="nw-")
        options = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
        self._cluster = Cluster(initialize_head=True, head_node_args=options)
        self._nodes = []
        ray.init(address=self._cluster.address, log_to_driver=False, logging_level="ERROR")
        self.repair()

    @property
    def address(self):
        return self._cluster.address

    @property
    def ids(self):
        return [node.node_id for node in self._nodes]

    def kill(self, node_id):
        """The node's own process, without which it is taken for dead. Those at a task may live on, with nobody to end them."""
        (node,) = (node for node in self._nodes if node.node_id == node_id)
        os.kill(raylet(node), signal.SIGKILL)
        self._nodes.remove(node)

    def repair(self):
        """As many nodes as at first, all of them seen."""
        while len(self._nodes) < self._count:
            self._nodes.append(self._cluster.add_node(num_cpus=self._cpus, object_store_memory=STORE_BYTES))
        wait_for(lambda: sum(node["Alive"] for node in ray.nodes()) == self._count + 1)

    def end(self):
        ray.shutdown()
        for node in [*self._nodes, self._cluster.head_node]:
            node.kill_all_processes(check_alive=False, allow_graceful=False)
        shutil.rmtree(self._folder, ignore_errors=True)


def raylet(node):
    return node.all_processes["raylet"][0].process.pid


def wait_for(condition, seconds=30):
    """Returns what the condition returns once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)
    return found
