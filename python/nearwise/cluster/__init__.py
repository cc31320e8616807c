"""Work on several machines, by Ray: `pip install nearwise[ray]`.

    ray.init(address="auto")
    search = nearwise.cluster.ShardedIvf(["part0.nw", "part1.nw"], replicas=2)
    ids, distances = search.search(queries, k=10, probes=32)

Answers are those of one process, bit for bit. Files must be found under the same path on every machine. Ray carries
queries and answers, sums of clusters, and the names of files; never rows of a base, indexes or graphs. docs/cluster.md says how to start and
secure a cluster.
"""

from nearwise.cluster._exact import ShardedExact
from nearwise.cluster._ivf import ShardedIvf
from nearwise.cluster._kmeans import train_kmeans
from nearwise.cluster._run import run

__all__ = ["ShardedExact", "ShardedIvf", "run", "train_kmeans"]
