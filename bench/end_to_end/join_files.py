"""Pairs within a threshold over files, by partitions: planted pairs, and time next to the k-NN graph of the same vectors.

    python join_files.py --base base.fbin --folder /scratch --memory-limit 2GiB --threads 2

Pairs are planted on both sides of the borders of k-means clusters, as many as the plan has partitions, at a radius with at most
--copies copies per vector. Prints one JSON line for each of: join (time, copies, planted pairs that are found), clusters (the
share of pairs that comparing within single clusters misses), graph (time), and with --check method `pairs` (equal bytes).
"""

import argparse
import json
import math
import time
from pathlib import Path

import nearwise
import numpy as np

PIECE = 1 << 16


def show(case, **report):
    print(json.dumps({"case": case} | report), flush=True)


def seconds_of(work):
    began = time.perf_counter()
    work()
    return round(time.perf_counter() - began, 2)


class Plans:
    def __init__(self, options):
        self._folder = Path(options.folder)
        self._settings = {"memory_limit": options.memory_limit, "threads": options.threads}

    def output(self, name):
        return self._folder / f"{name}.nw"

    def join(self, path, radius, method="partitions"):
        return nearwise.plan_threshold_join(
            path, self._folder / f"work-{method}", self.output(method), radius=radius, metric="euclidean", method=method,
            **self._settings,
        )  # fmt: skip

    def graph(self, path):
        return nearwise.plan_graph(path, self._folder / "work-graph", self.output("graph"), 10, **self._settings)


def radius_with(plans, path, copies):
    """The largest radius of a series that few vectors have a neighbour in and that at most `copies` are predicted for."""
    base = nearwise.read_vectors(path)
    nearest = nearwise.knn(np.asarray(base[:: max(1, len(base) // 500)], dtype=np.float32), base, 2, metric="euclidean")
    most = float(np.quantile(nearest.distances[:, 1], 0.05))
    radius = most / 1.5**8
    while 1.5 * radius <= most * 1.001 and plans.join(path, 1.5 * radius).join_report().predicted_copies <= copies:
        radius *= 1.5
    return radius


def planted_pairs(base, centroids, radius, count):
    """[2 * count, dim]: pairs at 0.99 of the radius, each across the bisector of the two centroids nearest to a vector."""
    chosen = np.asarray(base[:: max(1, len(base) // count)][:count], dtype=np.float32)
    near = nearwise.knn(chosen, centroids, 2).ids
    first, second = (centroids[near[:, i]].astype(np.float64) for i in (0, 1))
    across = second - first
    lengths = np.linalg.norm(across, axis=1, keepdims=True)
    across /= np.where(lengths == 0, 1, lengths)
    beyond = ((chosen - (first + second) / 2) * across).sum(axis=1, keepdims=True)
    middle = chosen - beyond * across
    step = 0.99 / 2 * radius * across
    return np.stack([middle - step, middle + step], axis=1).reshape(-1, base.shape[1]).astype(np.float32)


def pieces(base, more):
    for first in range(0, len(base), PIECE):
        yield np.asarray(base[first : first + PIECE], dtype=np.float32)
    yield more


def clusters_of(rows, centroids, threads):
    found = [
        nearwise.assign(rows[first : first + PIECE], centroids, threads=threads).ids[:, 0]
        for first in range(0, len(rows), PIECE)
    ]
    return np.concatenate(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--memory-limit", default="2GiB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--planted", type=int, default=10_000)
    parser.add_argument("--copies", type=float, default=4.5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    base = nearwise.read_vectors(options.base)
    plans = Plans(options)
    radius = radius_with(plans, options.base, options.copies)

    clusters = int(math.sqrt(len(base)))
    sample = np.asarray(base[:: max(1, len(base) // (16 * clusters))], dtype=np.float32)
    centroids = nearwise.train_hierarchical_kmeans(sample, clusters, iterations=4, threads=options.threads).centroids
    path = Path(options.folder) / "planted.fbin"
    planted = planted_pairs(base, centroids, radius, min(options.planted, len(base)))
    nearwise.write_vectors(path, pieces(base, planted))

    plan = plans.join(path, radius)
    disk = plan.disk_bytes
    seconds = seconds_of(plan.run)
    pairs = plan.load().pairs()
    found = {tuple(pair) for pair in pairs[pairs[:, 0] >= len(base)].tolist()}
    wanted = [(len(base) + 2 * i, len(base) + 2 * i + 1) for i in range(len(planted) // 2)]
    show(
        "join", rows=len(base) + len(planted), radius=radius, seconds=seconds, planned_disk_bytes=disk, pairs=len(pairs),
        planted=len(wanted), found=sum(pair in found for pair in wanted), **plan.join_report()._asdict(),
    )  # fmt: skip

    own = clusters_of(nearwise.read_vectors(path), centroids, options.threads)
    apart = own[pairs[:, 0]] != own[pairs[:, 1]]
    show(
        "clusters", clusters=len(centroids), missed_share=float(apart.mean()),
        missed_planted_share=float(np.mean([own[left] != own[right] for left, right in wanted])),
    )  # fmt: skip
    if options.check:
        other = plans.join(path, radius, "pairs")
        seconds = seconds_of(other.run)
        equal = plans.output("pairs").read_bytes() == plans.output("partitions").read_bytes()
        show("pairs", seconds=seconds, equal=equal)
        other.remove_work()
    plan.remove_work()
    show("graph", seconds=seconds_of(plans.graph(path).run))


if __name__ == "__main__":
    main()
