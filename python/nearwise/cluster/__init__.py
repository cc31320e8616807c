"""Search, k-means and plans on several machines, by Ray: `pip install nearwise[ray]`.

    ray.init(address="auto")
    search = nearwise.cluster.ShardedIvf(["part0.nw", "part1.nw"], replicas=2)
    ids, distances = search.search(queries, k=10, probes=32)

Results are those of one process, bit for bit; a graph index in parts is searched as several indexes. Files must have
the same path on every machine. Ray transfers queries and results, sums of clusters and file names; never vectors of a
base, indexes or graphs. docs/guide/cluster.md says how to start and secure a cluster.
"""

from nearwise.cluster._exact import ShardedExact
from nearwise.cluster._graph_index import ShardedGraphIndex
from nearwise.cluster._ivf import ShardedIvf
from nearwise.cluster._kmeans import train_kmeans
from nearwise.cluster._run import run

__all__ = ["ShardedExact", "ShardedGraphIndex", "ShardedIvf", "run", "train_kmeans"]
