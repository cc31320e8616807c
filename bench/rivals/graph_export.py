"""A graph index exported to hnswlib beside hnswlib's own index: recall at equal ef.

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

K = 10


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
        nearwise.GraphIndex.build(base, threads=options.threads).export_hnswlib(path)
        exported.load_index(path)
    for ef in (10, 20, 40, 80, 160, 320):
        found = {}
        for name, index in (("own", own), ("exported", exported)):
            index.set_ef(ef)
            ids = index.knn_query(queries, K)[0]
            found[name] = round(float(np.mean([np.isin(right, one).mean() for one, right in zip(ids, truth, strict=True)])), 4)
        print(json.dumps({"ef": ef, **found}), flush=True)


if __name__ == "__main__":
    main()
