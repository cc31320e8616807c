"""Whatever can be built can be saved and loaded, however large or small its numbers are."""

import tempfile
from pathlib import Path

import nearwise
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

METRICS = st.sampled_from(("sqeuclidean", "inner_product", "cosine"))
SCALES = (3.4e38, 3e38, 1.1e38, 9e37, 1e30, 1e19, 1.0, 1e-19, 1e-38, 1e-44, 0.0)


def product(rows, metric, vectors):
    return nearwise.IvfPq.build(rows, lists=4, code_bytes=4, bits=4, metric=metric, vectors=vectors)


def of_a_file(rows, metric, folder):
    nearwise.write_vectors(folder / "kept.fbin", rows)
    return product(rows, metric, f"file:{folder}/kept.fbin")


# make(rows, metric, folder)
MAKERS = {
    "flat": lambda rows, metric, _: nearwise.IvfFlat.build(rows, lists=4, metric=metric),
    "pq": lambda rows, metric, _: product(rows, metric, "keep"),
    "pq of halves": lambda rows, metric, _: product(rows, metric, "f16"),
    "pq of bytes": lambda rows, metric, _: product(rows, metric, "u8"),
    "pq of a file": of_a_file,
    "lsq": lambda rows, metric, _: nearwise.IvfLsq.build(rows, lists=4, code_bytes=2, rounds=1, metric=metric),
    "graph": lambda rows, metric, _: nearwise.build_knn_graph(rows, 4, metric=metric),
    "graph index": lambda rows, metric, _: nearwise.GraphIndex.build(rows, degree=16, metric=metric),
    "product": lambda rows, *_: nearwise.ProductQuantizer.train(rows, parts=2, bits=4),
    "optimized": lambda rows, *_: nearwise.OptimizedProductQuantizer.train(rows, parts=2, bits=4, rounds=2),
    "additive": lambda rows, *_: nearwise.AdditiveQuantizer.train(rows, codebooks=2, rounds=1),
}


@st.composite
def extreme_rows(draw):
    """300 x 8 finite rows of one magnitude, some of them of another, around a centre or all on one side of it."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = random.uniform(-1, 1, (300, 8)) * draw(st.sampled_from(SCALES))
    if draw(st.booleans()):
        rows = np.abs(rows)
    others = draw(st.sampled_from((0, 1, 30)))
    rows[:others] = random.uniform(-1, 1, (others, 8)) * draw(st.sampled_from(SCALES))
    return rows.astype(np.float32)


def answers_of(made, rows):
    if isinstance(made, nearwise.Ivf):
        return *made.search(rows, 3, probes=4), made.get(made.ids())
    if isinstance(made, nearwise.GraphIndex):
        return *made.search(rows, 3), made.get(made.ids())
    if isinstance(made, nearwise.KnnGraph):
        return made.ids, made.distances
    return (made.encode(rows),)


def assert_equal(left, right):
    for before, after in zip(left, right, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.filterwarnings("ignore:target recall")
@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=25)
@given(rows=extreme_rows(), metric=METRICS)
def test_what_is_built_is_loaded(kind, rows, metric):
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = MAKERS[kind](rows, metric, Path(folder))
        except ValueError as error:
            # Codes and halves have a largest magnitude. Finite numbers are never called anything else.
            assert "magnitudes must be at most" in str(error), error
            return
        path = Path(folder) / "saved.nw"
        made.save(path)
        assert_equal(answers_of(made, rows), answers_of(nearwise.load(path), rows))


def radius_of(rows, metric):
    """A finite threshold, within which half of the rows have three others if their distances are finite."""
    distances = np.sort(nearwise.knn(rows, rows, 4, metric=metric).distances[:, 3])
    largest = np.finfo(np.float32).max
    return float(np.clip(distances[len(distances) // 2], -largest, largest))


@settings(max_examples=8)
@given(rows=extreme_rows(), metric=METRICS)
def test_pairs_and_duplicates_are_loaded(rows, metric):
    threshold = {"radius": radius_of(rows, metric), "metric": metric}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nearwise.write_vectors(folder / "rows.fbin", rows)
        for operation, kind in ((nearwise.threshold_join, "pairs"), (nearwise.dedup, "deduplication")):
            output = folder / f"{kind}.nw"
            files = {"work": folder / kind, "output": output, "memory_limit": "32MiB"}
            found = operation(folder / "rows.fbin", **files, **threshold)
            assert nearwise.verify(output).kind == kind
            assert_equal(operation(rows, **threshold), found)


@settings(max_examples=25)
@given(rows=extreme_rows(), metric=METRICS)
def test_neighbors_are_loaded(rows, metric):
    found = nearwise.knn(rows, rows, 3, metric=metric)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nearwise.save(folder / "neighbors.nw", found, metric=metric)
        assert_equal(found, nearwise.load(folder / "neighbors.nw").neighbors)
        nearwise.write_neighbors(folder / "neighbors.bin", found)
        assert_equal(found, nearwise.read_neighbors(folder / "neighbors.bin"))


@given(rows=extreme_rows(), metric=METRICS)
def test_exact_search_takes_every_finite_row(rows, metric):
    found = nearwise.knn(rows, rows, 3, metric=metric)
    assert ((found.ids >= 0) & (found.ids < 300)).all() and not np.isnan(found.distances).any()
    nearwise.train_kmeans(rows, 3, metric="cosine" if metric == "cosine" else "sqeuclidean")
    nearwise.Exact(rows, metric=metric).search(rows[:5], 2)
