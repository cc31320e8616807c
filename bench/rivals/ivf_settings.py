"""Which settings of an inverted file reach a recall, and which of them are the fastest: grids searched in two passes.

First with some of the queries: for every number of candidates the fewest probes that reach a target, by halving, as more probes
find more. Then the fastest of these with all queries, and with more probes where they just miss the target.
"""
import sys
import time

import numpy
from ivf_libraries import build

# Of a library the fastest settings of the first pass, which are tried with all queries.
NEAR = 5
# Steps of the grid that some queries may have found too few.
MORE_STEPS = 3


def recall(found, truth):
    return float(numpy.mean([len(set(row) & set(true)) / len(true) for row, true in zip(found, truth)]))


def time_one_by_one(library, queries, setting):
    """Of an index in use: every list that these queries probe has been looked at before."""
    for number in range(len(queries)):
        library.search_one(queries[number:number + 1], setting["probes"], setting["candidates"])
    times = []
    for number in range(len(queries)):
        row = queries[number:number + 1]
        start = time.perf_counter()
        library.search_one(row, setting["probes"], setting["candidates"])
        times.append(1e6 * (time.perf_counter() - start))
    return {"p50_us": float(numpy.percentile(times, 50)), "p99_us": float(numpy.percentile(times, 99))}


class Settings:
    """time_of(library, setting, seconds of a batch): what settings are compared by."""

    def __init__(self, options, data, time_of):
        self.options, self.data, self.time_of = options, data, time_of
        self.libraries = {}
        self.known = {}  # by library, lists, probes, candidates and the number of queries
        self.found = {target: [] for target in options.targets}
        for lists in options.lists:
            for name in ("nearwise", *options.rivals):
                start = time.perf_counter()
                self.libraries[name, lists] = build(name, options, data, lists, options.code_bytes)
                built = time.perf_counter()
                for target in options.targets:
                    self.found[target] += self.near(name, lists, target)
                print(f"{name}, {lists} lists: built in {built - start:.1f} s, settings found in "
                      f"{time.perf_counter() - built:.1f} s", file=sys.stderr, flush=True)

    @property
    def tried(self):
        return len(self.known)

    def library(self, setting):
        return self.libraries[setting["library"], setting["lists"]]

    def run(self, name, lists, probes, candidates, count):
        key = name, lists, probes, candidates, count
        if key not in self.known:
            library = self.libraries[name, lists]
            start = time.perf_counter()
            found = library.search(probes, candidates, count)
            seconds = time.perf_counter() - start
            setting = {"library": name, "lists": lists, "probes": probes, "candidates": candidates,
                       "recall": recall(found, self.data.truth[:count])}
            setting["time"] = self.time_of(library, setting, seconds)
            self.known[key] = setting
        return self.known[key]

    def near(self, name, lists, target):
        """The fastest settings that reach the target with all queries, the fastest first."""
        grid = [probes for probes in self.options.grid_probes if probes <= lists]
        few = min(self.options.few_queries, len(self.data.queries))
        places = []
        for candidates in self.options.grid_candidates:
            low, high = 0, len(grid)  # the first place that reaches it is in [low, high]
            while low < high:
                middle = (low + high) // 2
                if self.run(name, lists, grid[middle], candidates, few)["recall"] >= target:
                    high = middle
                else:
                    low = middle + 1
            if low < len(grid):
                places.append((self.run(name, lists, grid[low], candidates, few)["time"], low, candidates))
        reached = []
        for _, place, candidates in sorted(places)[:NEAR]:
            for probes in grid[place:place + MORE_STEPS]:
                setting = self.run(name, lists, probes, candidates, None)
                if setting["recall"] >= target:
                    reached.append(setting)
                    break
        return sorted(reached, key=lambda setting: setting["time"])

    def fastest(self, target):
        """{library: its settings that reach the target, the fastest first}."""
        by_library = {}
        for setting in sorted(self.found[target], key=lambda setting: setting["time"]):
            by_library.setdefault(setting["library"], []).append(dict(setting))
        return by_library
