"""A graph index exported to DiskANN and searched by it: recall for several search lists (complexity).

    nearwise index export index.nw --library diskann -o folder
    python graph_export_diskann.py --folder folder --queries queries.npy --truth ids.npy

Needs an environment of its own: diskannpy 0.7.0 wants numpy 1.25. Queries are float32, of length 1 for cosine; truth has
the ids of the nearest neighbours, and the index row numbers as ids. Prints one JSON line for each complexity.
"""

import argparse
import json

import diskannpy
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--truth", required=True)
    options = parser.parse_args()
    queries = np.load(options.queries)
    truth = np.load(options.truth)
    index = diskannpy.StaticMemoryIndex(options.folder, num_threads=1, initial_search_complexity=320)
    for complexity in (10, 20, 40, 80, 160, 320):
        found = index.batch_search(queries, truth.shape[1], complexity, 1).identifiers
        recall = np.mean([np.isin(right, one).mean() for one, right in zip(found, truth)])
        print(json.dumps({"complexity": complexity, "recall": round(float(recall), 4)}), flush=True)


if __name__ == "__main__":
    main()
