"""A graph index exported to hnswlib and to SVS beside hnswlib's own index: recall at equal ef (search window of SVS).

    python graph_export.py --base base.u8bin --queries query.u8bin

Prints one JSON line for each ef.
"""

import argparse
import json
import os
import tempfile

import common
import hnswlib
import nearwise
import numpy as np
import svs

K = 10


def recall(ids, truth):
    return round(float(np.mean([np.isin(right, one).mean() for one, right in zip(ids, truth, strict=True)])), 4)


def in_svs(index, folder):
    index.export_svs(folder)
    vectors = svs.VectorDataLoader(f"{folder}/vectors.fvecs", svs.DataType.float32)
    graph = svs.GraphLoader(f"{folder}/graph")
    return svs.Vamana(f"{folder}/config", graph, vectors, svs.DistanceType.L2, num_threads=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--links", type=int, default=24, help="M of hnswlib's own index; ours has 48 edges on level 0")
    options = parser.parse_args()
    base = np.ascontiguousarray(common.read_rows(options.base, options.rows))
    queries = np.ascontiguousarray(common.read_rows(options.queries, options.count, np.float32))
    truth = nearwise.knn(queries, base.astype(np.float32), K, threads=options.threads).ids
    own = hnswlib.Index("l2", base.shape[1])
    own.init_index(len(base), M=options.links, ef_construction=200)
    own.set_num_threads(options.threads)
    own.add_items(base.astype(np.float32))
    exported = hnswlib.Index("l2", base.shape[1])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "index.hnsw")
        index = nearwise.GraphIndex.build(base, threads=options.threads)
        index.export_hnswlib(path)
        exported.load_index(path)
        svs_index = in_svs(index, os.path.join(folder, "svs"))
    for ef in (10, 20, 40, 80, 160, 320):
        found = {}
        for name, other in (("own", own), ("exported", exported)):
            other.set_ef(ef)
            found[name] = recall(other.knn_query(queries, K)[0], truth)
        svs_index.search_window_size = ef
        found["svs"] = recall(svs_index.search(queries, K)[0], truth)
        print(json.dumps({"ef": ef, **found}), flush=True)


if __name__ == "__main__":
    main()
